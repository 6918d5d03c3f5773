"""What a verdict on each program must say, where it runs on a gang."""

from __future__ import annotations

from dataclasses import replace

from tests.diagnose.faults import PROGRAMS as JOBS, Program, differs, late, right
from tests.diagnose.stalls import STALLS

from rankbridge_server.doctor.verdict import Condition, Kind

_GONE = frozenset({Condition.STOPPED, Condition.DEAD})
"""A rank that says nothing is lost to a gang within a second, and `rankbridge up` ends its process."""


def _as_in_jobs(name: str, *conditions: Condition) -> Program:
    return replace(
        JOBS[name],
        # What gives wrong values elsewhere is refused here.
        what=JOBS[name].what.partition(":")[0],
        ends=False,
        conditions=frozenset(conditions) or JOBS[name].conditions,
    )


_LIKE_JOBS = (
    *(it for it in STALLS if it not in ("gil", "gil_in_thread", "stopped", "store")),
    *("moving_threads", "in_subgroup", "in_objects", "in_ddp", "two_asleep", "p2p_never_sent", "killed"),
    *("p2p_work", "other_order"),
    *("other_collective", "extra_barrier", "half_and_half", "other_root", "other_shape", "other_dtype"),
    *("other_op", "swallowed", "two_groups", "p2p_tag", "p2p_peer", "p2p_and_collective", "p2p_size"),
    *("slow_rank", "busy_rank"),
)
_RIGHT_LIKE_JOBS = tuple(it.name for it in JOBS.values() if it.is_right)
FAULTS = (
    *(_as_in_jobs(it) for it in _LIKE_JOBS),
    *(_as_in_jobs(it, *_GONE) for it in ("gil", "gil_in_thread", "stopped")),
    _as_in_jobs("store", Condition.LOCK),
    _as_in_jobs("raises", Condition.IDLE),
    _as_in_jobs("fewer_steps", Condition.IDLE),
    late("stuck_controller", "a controller that calls no more", Condition.IDLE),
    late("in_function", "a function of all ranks, from which one does not return", Condition.ASLEEP),
    differs("other_dim", "another dimension", Kind.MISMATCH_TERMS),
    Program("slow_controller", "a controller slower than the others", frozenset({Kind.SLOW})),
)
RIGHT = (
    *(JOBS[it] for it in _RIGHT_LIKE_JOBS),
    right("uneven_function", "a function that takes longer on one rank"),
    right("one_controller", "calls of all ranks by one controller"),
)
PROGRAMS = {it.name: it for it in (*FAULTS, *RIGHT)}
