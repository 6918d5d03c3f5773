"""Breakpoints of a rank: which operations they hold, and how those go on."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from tests.support.local_gang import LocalGang, a_call
from tests.support.tasks import error_of
from tests.support.waiting import until

from rankbridge_server.core import generation as generation_module
from rankbridge_server.core.activity import Doing
from rankbridge_server.core.admission import inquiries
from rankbridge_server.core.caller import Caller
from rankbridge_server.core.coordinator import ReduceOp
from rankbridge_server.core.errors import BridgeError, ErrorCode, Failure
from rankbridge_server.core.hold.breakpoint import Breakpoint, SeenCall
from rankbridge_server.core.hold.holds import MAX_BREAKPOINTS, Action, Held, Release, SetBreakpoint
from rankbridge_server.core.operations.agreements import Barrier, barrier
from rankbridge_server.core.operations.reductions import AllReduce, all_reduce
from rankbridge_server.core.rank import Rank
from rankbridge_server.core.refs.refs import Ref
from rankbridge_server.core.refs.summary import Bounds
from rankbridge_server.core.task import Task

SIZE = 3
TIMEOUT_S = 20.0
GO = Release(Action.CONTINUE)


@pytest.fixture
def gang() -> Iterator[LocalGang]:
    it = LocalGang(SIZE)
    yield it
    for rank in it.ranks:
        rank.close("the test is over")


def add(refs: list[Ref]) -> list[AllReduce]:
    return [AllReduce(it.id, ReduceOp.SUM, in_place=False) for it in refs]


def begin(gang: LocalGang, refs: list[Ref], operation_id: str, timeout: float = TIMEOUT_S) -> list[Task]:
    call = a_call(operation_id=operation_id, timeout=timeout)
    return [rank.submit(all_reduce, args, call) for rank, args in zip(gang.ranks, add(refs), strict=True)]


def held(rank: Rank) -> Held:
    """The one call that a rank holds, once it does."""
    until(lambda: len(rank.holds.held()) == 1)
    return rank.holds.held()[0]


def break_at(gang: LocalGang, breakpoint: Breakpoint) -> list[SetBreakpoint]:
    return [rank.holds.set(breakpoint) for rank in gang.ranks]


def failure(task: Task) -> Failure:
    error = error_of(task, TIMEOUT_S)
    assert isinstance(error, BridgeError)
    return error.failure


def test_a_held_operation_is_not_announced_and_goes_on_when_it_is_let_go(gang: LocalGang) -> None:
    break_at(gang, Breakpoint(operation="all_reduce"))
    refs = gang.full(1.0)
    tasks = begin(gang, refs, "sum")
    calls = [held(rank).call for rank in gang.ranks]
    assert [it.announced for it in tasks] == [0.0] * SIZE
    assert {(it.caller, it.operation, it.group, it.number, it.operation_id) for it in calls} == {
        (Caller.CONTROLLER, "all_reduce", "world", 1, "sum")
    }
    assert {it.contract for it in calls} == {"all_reduce dtype=float32 shape=[2] op=sum"}
    for rank in gang.ranks:
        assert rank.holds.release(rank.holds.get(0), GO)
    for task, rank in zip(tasks, gang.ranks, strict=True):
        result = task.wait()
        assert isinstance(result, Ref)
        assert gang.floats(result) == [3.0, 3.0]
        assert rank.holds.held() == []


def test_what_a_held_operation_reads_can_be_seen(gang: LocalGang) -> None:
    break_at(gang, Breakpoint())
    refs = gang.full(2.5)
    tasks = begin(gang, refs, "sum")
    for rank in gang.ranks:
        (tensor,) = held(rank).call.inputs()
        assert rank.backend.tensors.described(tensor) == ("float32", (2,))
        summary = rank.backend.tensors.summary(tensor)
        assert (summary.least, summary.most, summary.nans) == (2.5, 2.5, 0)
    for rank in gang.ranks:
        rank.holds.close()
    assert [gang.floats(it) for task in tasks if isinstance(it := task.wait(), Ref)] == [[7.5, 7.5]] * SIZE


def test_other_operations_are_not_held(gang: LocalGang) -> None:
    break_at(gang, Breakpoint(operation="all_reduce", group="tp"))
    break_at(gang, Breakpoint(operation="barrier", number=2))
    refs = gang.full(1.0)
    assert all(isinstance(it, Ref) for it in gang.run(all_reduce, add(refs)))
    (first, *_) = gang.run(barrier, [Barrier()] * SIZE, timeout=0.3)
    assert isinstance(first, BridgeError)
    assert first.failure.code is ErrorCode.DEADLINE_EXCEEDED


def test_a_breakpoint_with_a_number_holds_once(gang: LocalGang) -> None:
    break_at(gang, Breakpoint(number=1))
    refs = gang.full(1.0)
    tasks = begin(gang, refs, "skipped")
    for rank in gang.ranks:
        rank.holds.release(held(rank), Release(Action.SKIP))
    assert {failure(it).code for it in tasks} == {ErrorCode.CANCELLED}
    # It has the number of the one that was skipped.
    assert all(isinstance(it, Ref) for it in gang.run(all_reduce, add(refs)))


@pytest.mark.parametrize(
    ("action", "code"), [(Action.SKIP, ErrorCode.CANCELLED), (Action.FAIL, ErrorCode.ABORTED)]
)
def test_what_is_skipped_or_fails_has_not_happened(gang: LocalGang, action: Action, code: ErrorCode) -> None:
    made = break_at(gang, Breakpoint(operation="all_reduce"))
    refs = gang.full(1.0)
    tasks = begin(gang, refs, "sum")
    for rank in gang.ranks:
        rank.holds.release(held(rank), Release(action, "it is wrong"))
    for it in map(failure, tasks):
        assert (it.code, it.indefinite) == (code, False)
        assert "it is wrong" in it.message
    for each in made:
        each.close()
    results = [it for it in gang.run(all_reduce, add(refs)) if isinstance(it, Ref)]
    assert [gang.floats(it) for it in results] == [[3.0, 3.0]] * SIZE
    assert [rank.group("world").sequence for rank in gang.ranks] == [1] * SIZE


def test_of_a_missing_rank_it_is_said_that_it_is_held(
    gang: LocalGang, monkeypatch: pytest.MonkeyPatch
) -> None:
    # On a busy machine rank 2 takes longer than that to say it.
    monkeypatch.setattr(inquiries, "ANSWER_S", TIMEOUT_S)
    monkeypatch.setattr(generation_module, "VERDICT_GRACE", TIMEOUT_S)
    gang.ranks[2].holds.set(Breakpoint(operation="all_reduce"))
    requests = add(gang.full(1.0))
    gang.ranks[2].submit(all_reduce, requests[2], a_call(operation_id="sum", timeout=TIMEOUT_S))
    held(gang.ranks[2])
    gang.ranks[1].submit(all_reduce, requests[1], a_call(operation_id="sum", timeout=TIMEOUT_S))
    # It has come, too, before the time of rank 0 begins.
    until(lambda: gang.ranks[0].pending()[1] != [])
    waiting = gang.ranks[0].submit(all_reduce, requests[0], a_call(operation_id="sum", timeout=0.3))
    found = failure(waiting)
    assert found.code is ErrorCode.PEER_MISSING
    (missing,) = [it for it in found.ranks if it.activity is not None]
    assert missing.rank == 2
    assert missing.activity is not None
    assert (missing.activity.doing, missing.activity.operation) == (Doing.HELD, "all_reduce")
    assert "it is held at a breakpoint, at all_reduce on world" in str(waiting.error)


def test_a_held_operation_is_withdrawn_at_its_timeout(gang: LocalGang) -> None:
    made = break_at(gang, Breakpoint(operation="all_reduce"))
    refs = gang.full(1.0)
    tasks = begin(gang, refs, "sum", timeout=0.3)
    for it in map(failure, tasks):
        assert (it.code, it.indefinite) == (ErrorCode.DEADLINE_EXCEEDED, False)
        assert "held at a breakpoint" in it.message
    # The lane goes on.
    for each in made:
        each.close()
    assert all(isinstance(it, Ref) for it in gang.run(all_reduce, add(refs)))


def test_the_end_of_a_generation_lets_go_and_the_next_is_held_again(gang: LocalGang) -> None:
    break_at(gang, Breakpoint(operation="all_reduce"))
    tasks = begin(gang, gang.full(1.0), "sum")
    before = [held(rank) for rank in gang.ranks]
    gang.form()
    assert {failure(it).code for it in tasks} == {ErrorCode.ABORTED}
    assert all(it.may_go.is_set() for it in before)
    tasks = begin(gang, gang.full(1.0), "again")
    assert all(held(rank).call.operation_id == "again" for rank in gang.ranks)
    for rank in gang.ranks:
        rank.holds.close()
    assert all(isinstance(it.wait(), Ref) for it in tasks)


def test_a_breakpoint_that_is_removed_lets_go_what_it_holds_and_nothing_else(gang: LocalGang) -> None:
    rank = gang.ranks[0]
    first, second = rank.holds.set(Breakpoint(operation="all_reduce")), rank.holds.set(Breakpoint())
    tasks = begin(gang, gang.full(1.0), "sum")
    assert held(rank).by is first
    second.close()
    assert [it.by for it in rank.holds.held()] == [first]
    first.close()
    assert all(isinstance(it.wait(), Ref) for it in tasks)
    assert not rank.holds.active


def test_who_has_set_it_hears_what_is_held_and_let_go(gang: LocalGang) -> None:
    rank = gang.ranks[1]
    made = rank.holds.set(Breakpoint(operation="all_reduce"))
    tasks = begin(gang, gang.full(1.0), "sum")
    notice = made.next()
    assert notice is not None
    assert (notice.held.call.operation, notice.release) == ("all_reduce", None)
    rank.holds.release(notice.held, Release(Action.STEP))
    gone = made.next()
    assert gone is not None
    assert (gone.held, gone.release) == (notice.held, Release(Action.STEP))
    assert all(isinstance(it.wait(), Ref) for it in tasks)
    made.close()
    assert made.next() is None


def test_a_step_holds_the_next_call_whichever_it_is(gang: LocalGang) -> None:
    break_at(gang, Breakpoint(operation="all_reduce"))
    tasks = begin(gang, gang.full(1.0), "sum")
    for rank in gang.ranks:
        rank.holds.release(held(rank), Release(Action.STEP))
    assert all(isinstance(it.wait(), Ref) for it in tasks)
    call = a_call(timeout=TIMEOUT_S)
    barriers = [rank.submit(barrier, Barrier(), call) for rank in gang.ranks]
    for rank in gang.ranks:
        it = held(rank)
        assert (it.call.operation, it.why) == ("barrier", "step")
        rank.holds.release(it, GO)
    assert [it.wait() for it in barriers] == [None] * SIZE
    # Only the next.
    assert gang.run(barrier, [Barrier()] * SIZE) == [None] * SIZE


@pytest.mark.parametrize(
    ("bounds", "value", "why"),
    [
        (Bounds(nan=True), float("nan"), "NaN in input 0"),
        (Bounds(nan=True, inf=True), float("-inf"), "Inf in input 0"),
        (Bounds(above=100.0), -101.0, "101 in input 0"),
    ],
)
def test_a_value_in_an_input_holds_the_rank_that_has_it(
    gang: LocalGang, bounds: Bounds, value: float, why: str
) -> None:
    made = break_at(gang, Breakpoint(bounds=bounds))
    refs = [gang.full_on(rank, value if rank == 1 else 100.0) for rank in range(SIZE)]
    tasks = begin(gang, refs, "sum")
    assert held(gang.ranks[1]).why == why
    assert [len(rank.holds.held()) for rank in gang.ranks] == [0, 1, 0]
    for it in made:
        it.close()
    assert all(isinstance(it.wait(), Ref) for it in tasks)


def test_after_a_mismatch_ranks_are_held_and_the_callers_have_the_error(gang: LocalGang) -> None:
    break_at(gang, Breakpoint(mismatch=True))
    refs = [gang.full_on(rank, 1.0, shape=(2 + (rank == 1),)) for rank in range(SIZE)]
    tasks = begin(gang, refs, "sum")
    assert {failure(it).code for it in tasks} == {ErrorCode.MISMATCH}
    for rank in gang.ranks:
        it = held(rank)
        assert (it.is_after, it.why) == (True, "its members did not agree")
    for rank in gang.ranks:
        rank.holds.close()
    assert gang.run(barrier, [Barrier()] * SIZE) == [None] * SIZE


def test_after_a_slow_operation_ranks_are_held(gang: LocalGang) -> None:
    made = break_at(gang, Breakpoint(slower=0.05))
    call = a_call(operation_id="late", timeout=TIMEOUT_S)
    tasks = [rank.submit(barrier, Barrier(), call) for rank in gang.ranks[:2]]
    until(lambda: gang.ranks[0].pending()[1] != [] and gang.ranks[0].pending()[1][0].waited > 0.06)
    tasks.append(gang.ranks[2].submit(barrier, Barrier(), call))
    assert [it.wait() for it in tasks] == [None] * SIZE
    assert re.fullmatch(r"it took \d+\.\d{3} s", held(gang.ranks[0]).why)
    for it in made:
        it.close()
    assert gang.run(barrier, [Barrier()] * SIZE) == [None] * SIZE


def test_there_is_a_limit_to_breakpoints(gang: LocalGang) -> None:
    holds = gang.ranks[0].holds
    for _ in range(MAX_BREAKPOINTS):
        holds.set(Breakpoint(operation="none"))
    with pytest.raises(BridgeError, match=f"at most {MAX_BREAKPOINTS}"):
        holds.set(Breakpoint())


def test_a_rank_that_stops_holds_nothing(gang: LocalGang) -> None:
    rank = gang.ranks[0]
    rank.holds.close()
    with pytest.raises(BridgeError, match="the rank stops"):
        rank.holds.set(Breakpoint())


@pytest.mark.parametrize(
    ("breakpoint", "names"),
    [
        (Breakpoint(), True),
        (Breakpoint(group="dp", operation="all_reduce", number=7, site="train.py:88"), True),
        (Breakpoint(site="/home/me/train.py:88"), True),
        (Breakpoint(site="loop.py:7"), True),
        (Breakpoint(site="rain.py:88"), False),
        (Breakpoint(group="tp"), False),
        (Breakpoint(number=8), False),
        (Breakpoint(caller=Caller.SCRIPT), True),
        (Breakpoint(caller=Caller.CONTROLLER), False),
        (Breakpoint(function="step"), False),
    ],
)
def test_a_call_is_named_if_all_is_true_of_it(breakpoint: Breakpoint, names: bool) -> None:
    call = SeenCall(
        caller=Caller.SCRIPT,
        operation="all_reduce",
        group="dp",
        number=7,
        site="loop.py:7 < /home/me/train.py:88",
    )
    assert breakpoint.names(call) is names
