"""Calls that are cancelled, outcomes that are asked for again, sessions that end."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.support.local_gang import LocalGang, a_call
from tests.support.tasks import error_of
from tests.support.waiting import until

from rankbridge_server.core.coordinator import ReduceOp
from rankbridge_server.core.errors import BridgeError, ErrorCode, Phase
from rankbridge_server.core.limits import Limits
from rankbridge_server.core.links import LinkMaker
from rankbridge_server.core.operations.agreements import Barrier, barrier
from rankbridge_server.core.operations.reductions import AllReduce, all_reduce
from rankbridge_server.core.refs.refs import Ref
from rankbridge_server.core.task import Task
from rankbridge_server.links.sockets import SocketLinkMaker

TIMEOUT_S = 10


@pytest.fixture(params=["local", "sockets"])
def gang(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[LocalGang]:
    links: Callable[[int], LinkMaker] | None = None
    if request.param == "sockets":
        links = lambda rank: SocketLinkMaker(f"unix:{tmp_path}/links-{rank}")  # noqa: E731
    it = LocalGang(3, links=links)
    yield it
    for rank in it.ranks:
        rank.close("the test is over")


def failed(task: Task) -> BridgeError:
    error = error_of(task, TIMEOUT_S)
    assert isinstance(error, BridgeError)
    return error


@pytest.mark.parametrize("rank", [0, 1])
def test_a_call_that_waits_for_others_can_be_cancelled_and_nobody_did_it(gang: LocalGang, rank: int) -> None:
    task = gang.ranks[rank].submit(barrier, Barrier(), a_call(operation_id="left"))
    until(lambda: task.phase is Phase.ADMISSION)
    task.cancel("a test")
    assert task.cancelled()
    failure = failed(task).failure
    assert (failure.code, failure.indefinite, failure.phase) == (ErrorCode.CANCELLED, False, Phase.ADMISSION)
    assert gang.run(barrier, [Barrier()] * 3) == [None] * 3


def test_a_queued_call_is_cancelled_at_once(gang: LocalGang) -> None:
    first = gang.ranks[1].submit(barrier, Barrier(), a_call())
    second = gang.ranks[1].submit(barrier, Barrier(), a_call())
    second.cancel("a test")
    assert second.cancelled()
    assert failed(second).failure.phase is Phase.CHECK
    first.cancel("a test")
    assert first.cancelled()


def test_a_call_that_is_done_cannot_be_cancelled(gang: LocalGang) -> None:
    tasks = [rank.submit(barrier, Barrier(), a_call(operation_id="done")) for rank in gang.ranks]
    assert [task.wait() for task in tasks] == [None] * 3
    tasks[0].cancel("a test")
    assert not tasks[0].cancelled()
    assert tasks[0].outcome() is None


def test_a_cancelled_operation_stays_cancelled_when_its_id_comes_again(gang: LocalGang) -> None:
    task = gang.ranks[0].submit(barrier, Barrier(), a_call(operation_id="once"))
    task.cancel("a test")
    assert task.cancelled()
    again = gang.ranks[0].submit(barrier, Barrier(), a_call(operation_id="once"))
    assert failed(again).failure.code is ErrorCode.CANCELLED


def test_an_outcome_can_be_had_again_by_its_id(gang: LocalGang) -> None:
    inputs = gang.full(1)
    args = [AllReduce(it.id, ReduceOp.SUM, False) for it in inputs]
    outcomes = gang.run(all_reduce, args, operation_id="kept")
    assert [rank.find("kept").outcome() for rank in gang.ranks] == outcomes
    assert all(isinstance(it, Ref) for it in outcomes)


def test_an_outcome_that_is_not_there_yet_is_a_deadline_not_an_end(gang: LocalGang) -> None:
    tasks = [gang.ranks[0].submit(barrier, Barrier(), a_call(operation_id="later"))]
    with pytest.raises(BridgeError) as error:
        gang.ranks[0].find("later").outcome(0.05)
    assert error.value.failure.code is ErrorCode.DEADLINE_EXCEEDED
    tasks += [rank.submit(barrier, Barrier(), a_call(operation_id="later")) for rank in gang.ranks[1:]]
    assert gang.ranks[0].find("later").outcome(TIMEOUT_S) is None


def test_a_repeated_call_waits_no_longer_than_its_own_timeout_and_withdraws_nothing(gang: LocalGang) -> None:
    first = gang.ranks[0].submit(barrier, Barrier(), a_call(operation_id="twice", timeout=60))
    again = gang.ranks[0].submit(barrier, Barrier(), a_call(operation_id="twice", timeout=0.05))
    with pytest.raises(BridgeError) as error:
        again.wait(0.05)
    assert error.value.failure.code is ErrorCode.DEADLINE_EXCEEDED
    others = [rank.submit(barrier, Barrier(), a_call(operation_id="twice")) for rank in gang.ranks[1:]]
    assert [task.wait() for task in (first, *others)] == [None] * 3


def test_an_id_that_never_came_is_unknown(gang: LocalGang) -> None:
    with pytest.raises(BridgeError) as error:
        gang.ranks[0].find("never")
    assert error.value.failure.code is ErrorCode.UNKNOWN_OPERATION


def test_closing_a_session_withdraws_its_calls_and_no_others(gang: LocalGang) -> None:
    gang.ranks[0].open_session("s", 0)
    refs = [gang.ranks[0].refs.reserve("s", gang.full_on(0, 1).spec).fill(object())]
    theirs = gang.ranks[0].submit(
        all_reduce, AllReduce(refs[0].id, ReduceOp.SUM, False), a_call(session_id="s")
    )
    others = gang.ranks[0].submit(barrier, Barrier(), a_call())
    assert gang.ranks[0].close_session("s") == 1
    assert failed(theirs).failure.code is ErrorCode.CANCELLED
    assert not others.done
    others.cancel("a test")
    assert others.cancelled()


def test_a_session_whose_lease_is_over_is_closed_with_its_refs_and_calls(gang: LocalGang) -> None:
    rank = gang.ranks[0]
    rank.open_session("s", 60)
    ref = rank.refs.reserve("s", gang.full_on(0, 1).spec).fill(object())
    task = rank.submit(all_reduce, AllReduce(ref.id, ReduceOp.SUM, False), a_call(session_id="s", timeout=60))
    # From now on, so that it is open until then, however slow the machine is.
    rank.open_session("s", 0.2)
    assert failed(task).failure.code is ErrorCode.CANCELLED
    with pytest.raises(BridgeError) as error:
        rank.refs.find("s", ref.id)
    assert error.value.failure.code is ErrorCode.UNKNOWN_SESSION
    assert [usage.session_id for usage in rank.refs.usage()] == [""]


def test_a_session_lives_as_long_as_it_is_renewed(gang: LocalGang) -> None:
    rank = gang.ranks[0]
    rank.open_session("kept", 30.0)
    rank.open_session("left", 0.2)
    until(lambda: rank.refs.renew_session("kept") == 30.0 and len(rank.refs.usage()) == 2)
    assert [usage.session_id for usage in rank.refs.usage()] == ["", "kept"]


def test_a_session_has_limits_of_its_own() -> None:
    gang = LocalGang(1, Limits(max_session_bytes=16, max_session_refs=2))
    rank = gang.ranks[0]
    rank.open_session("a", 0)
    rank.open_session("b", 0)
    spec = gang.full_on(0, 1).spec
    for session in ("a", "b"):
        for _ in range(2):
            rank.refs.reserve(session, spec).fill(object())
        with pytest.raises(BridgeError) as error:
            rank.refs.reserve(session, spec)
        assert error.value.failure.code is ErrorCode.RESOURCE_EXHAUSTED
        assert "this session" in error.value.failure.message
