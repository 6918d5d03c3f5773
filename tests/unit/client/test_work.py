"""What a work keeps of its outcome, and what it asks for again."""

from __future__ import annotations

from typing import Any

import pytest
from tests.unit.client.declared import gang

import rankbridge
from rankbridge import RankBridgeError, Work
from rankbridge._plan.calls import Call


class Answers:
    """Channels that give one answer after another."""

    def __init__(self, *answers: Any) -> None:
        self.asked: list[str] = []
        self._answers = list(answers)

    def run(self, call: Call[Any]) -> Any:
        """Notes what is asked, and gives or raises the next answer."""
        self.asked.append(call.kind)
        answer = self._answers.pop(0)
        if isinstance(answer, RankBridgeError):
            raise answer
        return answer


def work_of(*answers: Any) -> tuple[Work[Any], Answers]:
    """A work of rank 2, and who answers it."""
    channels: Any = Answers(*answers)
    return Work(channels, "id", gang()._scope(2), 5.0), channels


def test_a_value_is_asked_for_once_none_too() -> None:
    for value in (("value", 1), None):
        work, channels = work_of(value)
        assert work.wait() == value
        assert work.wait() == value
        assert work.is_complete()
        assert work.cancel() is False
        assert channels.asked == ["await"]


@pytest.mark.parametrize(
    "error",
    [
        rankbridge.MismatchError("both sides"),
        rankbridge.PeerLostError("rank 1 is gone", indefinite=True),
        rankbridge.CallCancelledError("withdrawn"),
    ],
)
def test_how_it_failed_is_asked_for_once(error: RankBridgeError) -> None:
    work, channels = work_of(error)
    for _ in range(2):
        with pytest.raises(type(error)) as caught:
            work.wait()
        assert caught.value is error
    assert channels.asked == ["await"]


@pytest.mark.parametrize(
    "error",
    [
        rankbridge.DeadlineExceededError("not done yet"),
        rankbridge.UnavailableError("connection lost", indefinite=True),
        rankbridge.UnknownOperationError("forgotten"),
        rankbridge.CallCancelledError("the gang is closed", indefinite=True),
    ],
)
def test_that_the_asking_failed_is_no_outcome(error: RankBridgeError) -> None:
    work, channels = work_of(error, "value")
    with pytest.raises(type(error)):
        work.wait(timeout=1)
    assert work.wait() == "value"
    assert channels.asked == ["await", "await"]


def test_whether_it_is_complete_is_asked_until_its_outcome_is_known() -> None:
    states = [rankbridge.OperationStatus(rank=2, state=state) for state in ("queued", "data", "done")]
    work, channels = work_of(*states, True, "value")
    assert [work.is_complete() for _ in states] == [False, False, True]
    assert work.cancel() is True
    assert work.wait() == "value"
    assert channels.asked == ["poll"] * 3 + ["cancel", "await"]
