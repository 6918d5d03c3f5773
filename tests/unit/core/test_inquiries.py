"""How a leader asks missing members what they do."""

from __future__ import annotations

from collections.abc import Mapping

from rankbridge_server.core.activity import Activity, Doing
from rankbridge_server.core.admission.inquiries import ANSWER_S, Inquiries

IDLE = Activity(doing=Doing.IDLE, seconds=3.0)
STOPPED = Activity(doing=Doing.STOPPED)
SILENT = Activity(doing=Doing.SILENT, seconds=ANSWER_S)


class Asked:
    """Inquiries of a leader, rank 0 in its group, of which rank 3 is stopped."""

    def __init__(self) -> None:
        self.questions: list[tuple[int, int]] = []
        self.known: list[Mapping[int, Activity]] = []
        self.stopped = {3}
        self.it = Inquiries(self._ask, lambda place: place in self.stopped)

    def _ask(self, number: int, place: int) -> Activity | None:
        self.questions.append((number, place))
        return IDLE if place == 0 else None

    def ask(self, *missing: int, now: float = 0.0) -> None:
        self.it.ask(missing, self.known.append, now)


def test_what_is_known_at_once_is_told_at_once() -> None:
    asked = Asked()
    asked.ask(0)
    asked.ask()
    assert asked.known == [{0: IDLE}, {}]
    assert asked.it.deadline is None


def test_all_have_answered_before_anything_is_told() -> None:
    asked = Asked()
    asked.ask(2, 1, 0)
    assert asked.questions == [(1, 0), (1, 1), (1, 2)]
    asked.it.answer(1, 2, STOPPED)
    assert asked.known == []
    asked.it.answer(1, 1, IDLE)
    assert asked.known == [{0: IDLE, 1: IDLE, 2: STOPPED}]
    assert asked.it.deadline is None


def test_of_who_is_stopped_no_answer_is_waited_for() -> None:
    asked = Asked()
    asked.ask(3, 0)
    assert asked.questions == [(1, 0), (1, 3)]
    assert asked.known == [{0: IDLE, 3: STOPPED}]
    assert asked.it.deadline is None


def test_who_does_not_answer_in_time_is_silent_or_known_to_be_stopped() -> None:
    asked = Asked()
    asked.stopped = set()
    asked.ask(1, 2, 3, now=10.0)
    # Since it was asked.
    asked.stopped = {3}
    asked.it.answer(1, 2, IDLE)
    assert asked.it.deadline == 10.0 + ANSWER_S
    asked.it.expire(10.0 + ANSWER_S / 2)
    assert asked.known == []
    asked.it.expire(10.0 + ANSWER_S)
    assert asked.known == [{1: SILENT, 2: IDLE, 3: STOPPED}]
    asked.it.answer(1, 1, IDLE)
    assert len(asked.known) == 1


def test_inquiries_go_side_by_side() -> None:
    asked = Asked()
    asked.ask(1, now=0.0)
    asked.ask(1, 2, now=1.0)
    asked.it.answer(2, 1, IDLE)
    asked.it.expire(ANSWER_S)
    assert asked.known == [{1: SILENT}]
    asked.it.answer(2, 2, IDLE)
    assert asked.known == [{1: SILENT}, {1: IDLE, 2: IDLE}]
