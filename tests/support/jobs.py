"""Evidence of jobs that never ran, for the tests of verdicts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from rankbridge_server.doctor.evidence import Call, Evidence, Frame, Group, Process, RankEvidence, Thread

NOW = 1000.0
TORCH = "/venv/lib/python3.11/site-packages/torch/distributed/distributed_c10d.py"
WORLD = "0"


def frame(name: str, line: int = 1, file: str = "/job/train.py") -> Frame:
    """A frame of the script."""
    return Frame(name=name, file=file, line=line)


IN_CALL = (Frame(name="all_reduce", file=TORCH, line=3252), frame("step", 7), frame("<module>", 9))
ELSEWHERE = (frame("next_batch", 4), frame("step", 6), frame("<module>", 9))


def main_thread(frames: Sequence[Frame], state: str = "S", owns_gil: bool = False) -> Thread:
    """The thread that runs the script."""
    return Thread(name="MainThread", os_id=1, state=state, owns_gil=owns_gil, frames=tuple(frames))


def call(
    number: int, kind: str = "all_reduce", group: str = WORLD, at: float = NOW - 10, **fields: object
) -> Call:
    """A call of a float32[4], which is done unless said."""
    made = Call(
        group=group, number=number, kind=kind, dtypes=("float32",), shapes=((4,),), called_at=at, done=True
    )
    return replace(made, **fields)  # type: ignore[arg-type]


def history(calls: int, group: str = WORLD, gap_s: float = 0.01, until: float = NOW - 10) -> list[Call]:
    """Calls that are done, one after another."""
    return [call(it + 1, group=group, at=until - (calls - it) * gap_s) for it in range(calls)]


def waiting(rank: int, calls: Iterable[Call], groups: Mapping[str, Sequence[int]]) -> RankEvidence:
    """A rank that is blocked in a collective."""
    return RankEvidence(
        rank=rank,
        pid=100 + rank,
        host="host",
        process=Process(
            state="S", wchan="futex_do_wait", syscall="futex", cpu_s=0.0, switches=0, blocked_s=9.0
        ),
        groups=tuple(Group(name=name, ranks=tuple(ranks)) for name, ranks in groups.items() if rank in ranks),
        threads=(main_thread(IN_CALL),),
        still=True,
        source="flight recorder",
        calls=tuple(calls),
    )


def elsewhere(rank: int, calls: Iterable[Call], groups: Mapping[str, Sequence[int]]) -> RankEvidence:
    """A rank that sleeps in its own code."""
    return replace(
        waiting(rank, calls, groups),
        process=Process(
            state="S", wchan="hrtimer_nanosleep", syscall="clock_nanosleep", blocked_s=9.0, cpu_s=0.0
        ),
        threads=(main_thread(ELSEWHERE),),
    )


def job(ranks: Sequence[RankEvidence]) -> Evidence:
    """All ranks together."""
    return Evidence(at=NOW, interval_s=0.4, world_size=len(ranks), ranks=tuple(ranks))


def late(size: int, absent: Sequence[int], calls: int = 5) -> Evidence:
    """A job of which some ranks sleep, and all others wait for them in the next call."""
    world = {WORLD: range(size)}
    before = history(calls)
    pending = call(calls + 1, done=False)
    return job(
        [
            elsewhere(it, before, world) if it in absent else waiting(it, [*before, pending], world)
            for it in range(size)
        ]
    )
