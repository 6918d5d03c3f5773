"""What is kept of operations that are done."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from rankbridge_server.core.errors import BridgeError, ErrorCode, Place
from rankbridge_server.core.operations.outcome import Packed
from rankbridge_server.core.operations.outcomes import Outcomes
from rankbridge_server.core.operations.point_to_point import SendObject
from rankbridge_server.core.task import Task

HALF = Packed(bytes(6000))


def done(outcomes: Outcomes, operation_id: str, request: object, outcome: Packed | None) -> Task:
    task = outcomes.once(operation_id, request, lambda: Task(Place(rank=0), 10.0, ""))
    task.commit(lambda: outcome)
    return task


@pytest.mark.parametrize("brought", [True, False])
def test_of_large_objects_the_latest_are_kept_and_of_others_that_they_are_done(brought: bool) -> None:
    outcomes = Outcomes(kept_bytes=15000)

    def one(operation_id: str) -> Task:
        if brought:
            return done(outcomes, operation_id, ("send_object", SendObject(HALF, 1)), None)
        return done(outcomes, operation_id, ("recv_object", 0), HALF)

    first, second, third = map(one, "abc")
    assert [outcomes.find(it) for it in "bc"] == [second, third]
    with pytest.raises(BridgeError) as raised:
        outcomes.find("a").outcome()
    assert raised.value.failure.code is ErrorCode.RESOURCE_EXHAUSTED
    assert one("a").done
    assert one("a") is not first


def test_what_is_small_is_kept_whatever_comes() -> None:
    outcomes = Outcomes(kept_bytes=15000)
    small = done(outcomes, "small", ("recv_object", 0), Packed(bytes(100)))
    for number in range(10):
        done(outcomes, str(number), ("recv_object", 0), HALF)
    assert outcomes.find("small") is small


def test_the_latest_is_kept_however_large() -> None:
    outcomes = Outcomes(kept_bytes=1000)
    done(outcomes, "old", ("recv_object", 0), HALF)
    latest = done(outcomes, "new", ("recv_object", 0), HALF)
    assert outcomes.find("new") is latest
    assert outcomes.find("old").done
    with pytest.raises(BridgeError):
        outcomes.find("old").outcome()


def pending() -> Task:
    return Task(Place(rank=0), 10.0, "")


def test_one_that_goes_on_does_not_keep_all_that_are_done_after_it() -> None:
    outcomes = Outcomes(remembered=3)
    going_on = outcomes.once("slow", "barrier", pending)
    for number in range(10):
        done(outcomes, str(number), "barrier", None)
    assert outcomes.find("slow") is going_on
    assert [outcomes.find(it).done for it in "789"] == [True] * 3
    with pytest.raises(BridgeError) as raised:
        outcomes.find("6")
    assert raised.value.failure.code is ErrorCode.UNKNOWN_OPERATION
    going_on.commit(lambda: None)
    assert outcomes.find("slow") is going_on
    with pytest.raises(BridgeError):
        outcomes.find("7")


def test_one_that_is_planned_for_long_keeps_no_other_from_being_begun() -> None:
    outcomes = Outcomes()
    planning, plan = threading.Event(), threading.Event()

    def slowly() -> Task:
        planning.set()
        assert plan.wait(30)
        return pending()

    with ThreadPoolExecutor(3) as threads:
        slow = threads.submit(outcomes.once, "slow", "barrier", slowly)
        assert planning.wait(30)
        other = threads.submit(outcomes.once, "other", "barrier", pending)
        assert other.result(30) is outcomes.find("other")
        again = threads.submit(outcomes.once, "slow", "barrier", _never)
        found = threads.submit(outcomes.find, "slow")
        plan.set()
        assert again.result(30) is slow.result(30)
        assert found.result(30) is slow.result(30)


def test_of_many_that_come_at_once_under_one_id_one_runs() -> None:
    outcomes, size = Outcomes(), 8
    together, begun = threading.Barrier(size), list[Task]()

    def start() -> Task:
        begun.append(pending())
        return begun[-1]

    def call() -> Task:
        together.wait(30)
        return outcomes.once("id", "barrier", start)

    with ThreadPoolExecutor(size) as threads:
        tasks = [it.result(30) for it in [threads.submit(call) for _ in range(size)]]
    assert [it is begun[0] for it in tasks] == [True] * size
    assert len(begun) == 1


def test_one_that_is_refused_leaves_its_id_to_who_waits_for_it() -> None:
    outcomes = Outcomes()
    planning, plan = threading.Event(), threading.Event()

    def refused() -> Task:
        planning.set()
        assert plan.wait(30)
        raise BridgeError.of(ErrorCode.UNKNOWN_REF, "no such ref")

    with ThreadPoolExecutor(2) as threads:
        first = threads.submit(outcomes.once, "id", "all_reduce", refused)
        assert planning.wait(30)
        second = threads.submit(outcomes.once, "id", "barrier", pending)
        plan.set()
        with pytest.raises(BridgeError, match="no such ref"):
            first.result(30)
        assert second.result(30) is outcomes.find("id")


def _never() -> Task:
    raise AssertionError("it runs twice")


def test_an_id_that_is_used_again_for_a_number_too_long_to_be_written_is_refused_as_any_other() -> None:
    outcomes = Outcomes()
    outcomes.once("id", ("all_reduce_value", 1), pending)
    with pytest.raises(BridgeError, match="was used for another operation") as caught:
        outcomes.once("id", ("all_reduce_value", 10**5000), _never)
    assert caught.value.failure.code is ErrorCode.INVALID_ARGUMENT
