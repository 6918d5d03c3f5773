"""What is kept of operations that are done."""

from __future__ import annotations

import pytest

from rankbridge_server.core.errors import BridgeError, ErrorCode, Place
from rankbridge_server.core.operations.outcome import Packed
from rankbridge_server.core.operations.outcomes import Outcomes
from rankbridge_server.core.operations.table import SendObject
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
