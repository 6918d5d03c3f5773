"""The verdict on a gang whose ranks run functions, or whose job calls torch.distributed."""

from dataclasses import replace

import pytest
from tests.support.testimonies import (
    ASLEEP,
    AWAKE,
    IN_FUNCTION,
    NOW,
    SIZE,
    done,
    judged,
    operation,
    rank,
    waiting_for,
)

from rankbridge_server.core.activity import Activity, Doing
from rankbridge_server.doctor import testimony
from rankbridge_server.doctor.evidence import Call, Frame, Group, Process, Thread
from rankbridge_server.doctor.testimony import Operation, Silence
from rankbridge_server.doctor.verdict import Condition, Kind


def running(
    number: int, *, ended: float | None, began: float = 20.0, call: str = "a", **fields: object
) -> Operation:
    """A function that all ranks were to run."""
    made = operation("call_function function=train", ago=began, kind="call_function", function="train")
    at = None if ended is None else NOW - ended
    return replace(made, entered_at=NOW - began, done_at=at, operation_id=call, **fields)  # type: ignore[arg-type]


def in_function(
    number: int, *operations: Operation, process: Process = ASLEEP, still: bool = True
) -> testimony.Testimony:
    return rank(number, *operations, process=process, threads=(IN_FUNCTION,), still=still)


def test_a_rank_that_has_not_returned_from_a_function_of_all_is_named() -> None:
    returned = [rank(it, running(it, ended=6.0)) for it in range(3)]
    verdict = judged([*returned, in_function(3, running(3, ended=None))])
    (culprit,) = verdict.culprits
    assert (verdict.kind, culprit.rank, culprit.condition) == (Kind.NEVER_CALLED, 3, Condition.ASLEEP)
    assert verdict.summary.startswith(
        "rank 3 has not returned from function train on world, as ranks 0-2 did 6.0 s ago, is asleep for 9.0 s"
    )
    assert verdict.call == "train world"


_BEFORE = [running(3, ended=30.0 - it, began=40.0 - it, call=f"{it}") for it in range(3)]


@pytest.mark.parametrize(
    ("late", "why"),
    [
        (in_function(3, running(3, ended=None), still=False), "it moves"),
        (in_function(3, running(3, ended=None), process=Process(state="R", cpu_s=0.2)), "it computes"),
        (
            in_function(
                3,
                *(running(3, ended=30.0 - it, began=40.0 - it, call=f"{it}") for it in range(3)),
                running(3, ended=None),
            ),
            "it has taken as long before",
        ),
    ],
    ids=lambda it: it if isinstance(it, str) else "",
)
def test_a_rank_that_may_only_have_more_to_do_is_not_blamed(late: testimony.Testimony, why: str) -> None:
    before = [running(0, ended=36.0 - it, began=40.0 - it, call=f"{it}") for it in range(3)]
    history = before if len(late.operations) > 1 else []
    verdict = judged([*[rank(it, *history, running(it, ended=6.0)) for it in range(3)], late])
    assert (verdict.kind, verdict.culprits) == (Kind.HEALTHY, ())


COLLECTIVE = Thread(
    name="functions",
    frames=(
        Frame(name="all_reduce", file="/venv/site-packages/torch/distributed/distributed_c10d.py", line=3000),
        Frame(name="train", file="/job/app.py", line=20),
        Frame(name="Run._call", file="/venv/rankbridge_server/core/functions/run.py", line=80),
    ),
)


def in_torch(
    number: int, calls: int, pending: bool, script: bool = False, **fields: object
) -> testimony.Testimony:
    """A rank whose function, or script, has called so many all_reduces of torch, and is in the last of them or not."""
    made = tuple(
        Call(
            group="0",
            number=it,
            kind="all_reduce",
            called_at=NOW - 30 + it,
            done=not pending or it < calls,
        )
        for it in range(1, calls + 1)
    )
    groups = (Group(name="0", ranks=tuple(range(SIZE)), description="default_pg"),)
    threads = (COLLECTIVE if pending else IN_FUNCTION,)
    started = () if script else (running(number, ended=None, began=40.0),)
    found = rank(number, *started, process=AWAKE if pending else ASLEEP, threads=threads, still=True)
    torch = testimony.TorchState(groups=groups, calls=made, script=script)
    return replace(found, torch=torch, **fields)  # type: ignore[arg-type]


@pytest.mark.parametrize("script", [False, True], ids=["function", "script"])
def test_collectives_of_torch_are_judged_as_those_of_any_job(script: bool) -> None:
    late = in_torch(2, 6, pending=False, script=script)
    if script:
        frames = (IN_FUNCTION.frames[0], Frame(name="<module>", file="/job/train.py", line=3))
        late = replace(late, threads=(Thread(name="MainThread", frames=frames),))
    verdict = judged(
        [in_torch(it, 7, pending=True, script=script) if it != 2 else late for it in range(SIZE)]
    )
    (culprit,) = verdict.culprits
    assert (verdict.kind, culprit.rank, culprit.condition) == (Kind.NEVER_CALLED, 2, Condition.ASLEEP)
    assert verdict.summary.startswith("rank 2 has not called all_reduce world#7, is asleep for 9.0 s")


def test_what_guard_holds_is_not_in_torchs_recorder_and_stacks_alone_say_who_has_not_come() -> None:
    held = (
        Frame(name="_World.admit", file="/x/rankbridge_server/job/guard/guard.py", line=142),
        Frame(name="_hook.<locals>.hook", file="/x/rankbridge_server/job/watch/hook.py", line=264),
        *COLLECTIVE.frames,
    )
    at_work = (Frame(name="<module>", file="/job/train.py", line=3),)
    ranks = [in_torch(it, 0, pending=False, script=True) for it in range(SIZE)]
    for it in range(SIZE):
        thread = Thread(name="MainThread", frames=at_work if it == 2 else held)
        ranks[it] = replace(ranks[it], threads=(thread,))
    verdict = judged(ranks)
    assert (verdict.kind, [it.rank for it in verdict.culprits]) == (Kind.NEVER_CALLED, [2])
    assert {it.rank: it.call for it in verdict.waits} == {0: "all_reduce", 1: "all_reduce", 3: "all_reduce"}
    # It moves.
    ranks[2] = replace(ranks[2], process=Process(state="R", cpu_s=0.4, switches=3), still=False)
    assert not judged(ranks).culprits


def test_a_silent_rank_may_have_called_what_others_wait_for_in_torch() -> None:
    ranks = [in_torch(it, 7, pending=True, script=True) for it in range(3)]
    verdict = judged(ranks, (Silence(rank=3, process=Process(state="S")),))
    assert (verdict.kind, verdict.culprits) == (Kind.UNKNOWN, ())


def test_a_rank_that_has_returned_while_others_wait_in_torch_is_idle() -> None:
    left = replace(
        in_torch(3, 6, pending=False), operations=(running(3, ended=9.0, began=40.0),), threads=(), still=None
    )
    left = replace(left, activity=Activity(doing=Doing.IDLE, seconds=9.0))
    verdict = judged([*[in_torch(it, 7, pending=True) for it in range(3)], left])
    assert [(it.rank, it.condition) for it in verdict.culprits] == [(3, Condition.IDLE)]


IN_STORE = (
    Frame(name="Condition.wait", file="/usr/lib/python3.11/threading.py", line=331),
    Frame(name="Store._ask", file="/venv/rankbridge_server/job/torch_store.py", line=60),
)
CALLED = (
    Frame(name="train", file="/job/app.py", line=20),
    Frame(name="Run._call", file="/venv/rankbridge_server/core/functions/run.py", line=80),
    Frame(name="Thread.run", file="/usr/lib/python3.11/threading.py", line=982),
)
NEW_GROUP = Frame(
    name="new_group", file="/venv/site-packages/torch/distributed/distributed_c10d.py", line=5000
)


def waiting_in(*frames: Frame) -> testimony.Testimony:
    thread = Thread(name="functions", frames=(*IN_STORE, *frames, *CALLED))
    return rank(3, running(3, ended=None), process=AWAKE, threads=(thread,), still=True)


def test_where_a_rank_waits_by_its_own_store_the_line_of_the_user_is_shown() -> None:
    (culprit,) = judged(waiting_for(waiting_in())).culprits
    assert (culprit.rank, culprit.condition) == (3, Condition.LOCK)
    assert list(map(str, culprit.stack)) == ["Condition.wait threading.py:331", "train app.py:20"]


def test_a_rank_that_torch_lets_wait_by_the_store_waits_itself_and_is_not_blamed() -> None:
    verdict = judged(waiting_for(waiting_in(NEW_GROUP)))
    assert (verdict.kind, verdict.culprits) == (Kind.UNKNOWN, ())


def test_another_order_is_seen_though_the_gang_has_done_much_since() -> None:
    def history(swapped: bool) -> list[Operation]:
        lines = [("a.py:1", "a.py:2")] * 300
        if swapped:
            lines[20] = ("a.py:2", "a.py:1")
        sites = [site for pair in lines for site in pair]
        return [replace(done(it, 700.0 - it), site=site) for it, site in enumerate(sites)]

    verdict = judged([rank(it, *history(it == 2)) for it in range(SIZE)])
    assert (verdict.kind, [it.rank for it in verdict.culprits]) == (Kind.ORDER, [2])
