"""Each program of job.py: what a verdict on it must say."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tests.diagnose.plan import Plan
from tests.diagnose.variants import Variant

from rankbridge_server.doctor.verdict import Condition, Kind

JOBS = frozenset({Variant.UNPREPARED, Variant.WATCHED, Variant.ATTACHED})
RECORDED = frozenset({Variant.WATCHED})


def _victim(plan: Plan) -> set[int]:
    return {plan.victim}


def _both(plan: Plan) -> set[int]:
    return {plan.victim, plan.partner}


def _drawn(plan: Plan) -> set[int]:
    return {plan.victim, plan.other}


def _nobody(plan: Plan) -> set[int]:
    return set()


@dataclass(frozen=True)
class Program:
    """A job, and the verdict that is right."""

    name: str
    what: str
    kinds: frozenset[Kind]
    conditions: frozenset[Condition] = frozenset()
    """Any of these; any at all if there are none."""
    blamed: Callable[[Plan], set[int]] = _victim
    involved: Callable[[Plan], set[int]] = _nobody
    """Where nobody is to blame: the ranks of the circle, or of both sides."""
    variants: frozenset[Variant] = JOBS
    """The variants in which it runs. In a job that nobody prepared: if it hangs, and what differs can be seen."""
    later_s: float = 3.0
    """When the doctor is called, after the fault has begun."""
    ends: bool = False
    """Whether the fault ends the job: only a record that outlives it tells why."""

    @property
    def is_right(self) -> bool:
        """Whether nothing is wrong with it."""
        return self.kinds == {Kind.HEALTHY}


def late(name: str, what: str, *conditions: Condition) -> Program:
    return Program(name, what, frozenset({Kind.NEVER_CALLED}), frozenset(conditions))


def _pair(name: str, what: str, *kinds: Kind) -> Program:
    return Program(name, what, frozenset(kinds), blamed=_nobody, involved=_both)


def differs(name: str, what: str, kind: Kind, *, silent: bool = False, ends: bool = False) -> Program:
    """`silent`: without an error, and without a hang."""
    return Program(name, what, frozenset({kind}), variants=RECORDED if silent or ends else JOBS, ends=ends)


def right(name: str, what: str) -> Program:
    return Program(name, what, frozenset({Kind.HEALTHY}), blamed=_nobody)


FAULTS = (
    late("asleep", "a sleep that is too long", Condition.ASLEEP),
    late("loader", "a loader of data that delivers nothing", Condition.BLOCKED_READ),
    late("endless_loop", "an endless loop", Condition.SPINNING),
    late("pipe", "a read of a silent pipe", Condition.BLOCKED_READ),
    late("socket_read", "a read of a silent socket", Condition.BLOCKED_READ),
    late("prompt", "a debugger's prompt that nobody sees", Condition.BLOCKED_READ),
    late("store", "a key of the store that nobody sets", Condition.BLOCKED_READ),
    late("locks", "a deadlock of two locks", Condition.LOCK),
    late("empty_queue", "a queue that nobody fills", Condition.LOCK),
    late("event", "an event that nobody sets", Condition.LOCK),
    late("file_lock", "a file's lock that another has", Condition.LOCK),
    late("gil", "Python's lock held in C", Condition.GIL_HELD),
    late("gil_in_thread", "Python's lock held by another thread", Condition.GIL_HELD),
    late("stopped", "SIGSTOP", Condition.STOPPED),
    late("child", "a child that does not end", Condition.WAITING_FOR_CHILD),
    late("moving_threads", "asleep, and a thread of every rank moves", Condition.ASLEEP),
    late("in_ddp", "asleep before DDP's backward", Condition.ASLEEP),
    late("in_subgroup", "asleep in one group; the others wait in the world", Condition.ASLEEP),
    late("in_objects", "asleep before all_gather_object", Condition.ASLEEP),
    Program(
        "two_asleep",
        "two ranks asleep",
        frozenset({Kind.NEVER_CALLED}),
        frozenset({Condition.ASLEEP}),
        blamed=_drawn,
    ),
    late("p2p_work", "asleep before a send, for which its partner waits by work.wait()", Condition.ASLEEP),
    late("p2p_never_sent", "asleep before a send", Condition.ASLEEP),
    late("teardown", "fewer steps, then waits at exit", Condition.TEARDOWN),
    late("thread_at_exit", "fewer steps, then a thread that does not end", Condition.TEARDOWN),
    Program(
        "not_begun",
        "one rank does not come to init_process_group",
        frozenset({Kind.RENDEZVOUS}),
        frozenset({Condition.ASLEEP}),
        later_s=12.0,
    ),
    differs("other_collective", "another collective", Kind.MISMATCH_KIND),
    differs("extra_barrier", "a barrier that the others do not call", Kind.MISMATCH_KIND),
    Program(
        "half_and_half",
        "another collective on half of the ranks",
        frozenset({Kind.MISMATCH_KIND}),
        blamed=_nobody,
        involved=_drawn,
    ),
    differs("other_root", "another root", Kind.MISMATCH_ROOT),
    _pair("two_groups", "two groups in opposite order", Kind.ORDER_INVERSION),
    _pair("p2p_tag", "a send with another tag", Kind.P2P_UNMATCHED),
    _pair("p2p_peer", "a send to another rank", Kind.P2P_UNMATCHED),
    _pair("p2p_and_collective", "a send after a collective, the receive before it", Kind.ORDER_INVERSION),
    Program("slow_rank", "one rank slower than the others", frozenset({Kind.SLOW})),
    Program("busy_rank", "one rank with more work", frozenset({Kind.SLOW})),
    differs("other_op", "another reduce op: wrong values, no error", Kind.MISMATCH_OP, silent=True),
    differs("other_order", "another order, alike in shape: wrong values", Kind.ORDER, silent=True),
    differs("other_shape", "another shape", Kind.MISMATCH_SHAPE, ends=True),
    differs("other_dtype", "another dtype", Kind.MISMATCH_DTYPE, ends=True),
    differs("swallowed", "an exception swallowed: one call less", Kind.MISMATCH_SHAPE, ends=True),
    Program(
        "p2p_size",
        "a send larger than the receive",
        frozenset({Kind.MISMATCH_SHAPE}),
        blamed=_nobody,
        involved=_both,
        variants=RECORDED,
        ends=True,
    ),
    Program(
        "killed",
        "SIGKILL",
        frozenset({Kind.NEVER_CALLED}),
        frozenset({Condition.DEAD}),
        variants=RECORDED,
        ends=True,
    ),
    Program(
        "raises",
        "an exception",
        frozenset({Kind.NEVER_CALLED}),
        frozenset({Condition.DEAD}),
        variants=RECORDED,
        ends=True,
    ),
    Program(
        "fewer_steps",
        "fewer steps, then exits",
        frozenset({Kind.NEVER_CALLED}),
        frozenset({Condition.EXITED}),
        variants=RECORDED,
        ends=True,
    ),
)
RIGHT = (
    right("fast", "a fast loop"),
    right("all_slow", "every rank slow"),
    right("taking_turns", "another rank slow at each step"),
    right("checkpoints", "rank 0 writes a checkpoint at times"),
    right("computing", "long steps"),
    right("uneven_sizes", "uneven all_to_all, objects of unequal size"),
    right("pipeline", "a pipeline of sends"),
    right("other_lines", "the root calls from another line"),
    right("overlapped", "eight calls at once"),
    right("training", "DDP"),
    right("made_anew", "the groups destroyed and made anew"),
    right("idle", "all ranks idle"),
    right("slow_start", "rank 0 prepares for long"),
)
PROGRAMS = {it.name: it for it in (*FAULTS, *RIGHT)}
