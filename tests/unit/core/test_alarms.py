"""Alarms: rung when they are due, unless they were taken back."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from queue import SimpleQueue

import pytest

from rankbridge_server.core.alarms import Alarms

PATIENCE_S = 30.0


class Rung:
    """What has rung, in order."""

    def __init__(self) -> None:
        self._rings: SimpleQueue[str] = SimpleQueue()

    def bell(self, name: str) -> Bell:
        return Bell(self._rings, name)

    def next(self) -> str:
        return self._rings.get(timeout=PATIENCE_S)

    def silent(self) -> bool:
        return self._rings.empty()


class Bell:
    def __init__(self, rings: SimpleQueue[str], name: str) -> None:
        self._rings = rings
        self._name = name

    def __call__(self) -> None:
        self._rings.put(self._name)


@pytest.fixture
def alarms(request: pytest.FixtureRequest) -> Alarms:
    return Alarms(request.node.name)


@pytest.fixture
def rung() -> Rung:
    return Rung()


def threads(name: str) -> int:
    return sum(it.name == name for it in threading.enumerate())


def soon(seconds: float = 0.02) -> float:
    return time.monotonic() + seconds


def test_there_is_a_thread_from_the_first_alarm_on(
    alarms: Alarms, rung: Rung, request: pytest.FixtureRequest
) -> None:
    alarms.cancel("none")
    assert threads(request.node.name) == 0
    alarms.set("one", soon(), rung.bell("one"))
    alarms.set("two", soon(), rung.bell("two"))
    assert threads(request.node.name) == 1
    assert {rung.next(), rung.next()} == {"one", "two"}


def test_none_rings_before_its_time(alarms: Alarms) -> None:
    due, times = soon(0.05), SimpleQueue[float]()
    alarms.set("it", due, lambda: times.put(time.monotonic()))
    assert times.get(timeout=PATIENCE_S) >= due


def test_what_was_taken_back_does_not_ring(alarms: Alarms, rung: Rung) -> None:
    def work() -> None:
        # Here, in their own thread, none rings meanwhile.
        alarms.set("left", time.monotonic(), rung.bell("left"))
        alarms.set("after", soon(), rung.bell("after"))
        alarms.cancel("left")

    alarms.set("work", time.monotonic(), work)
    assert rung.next() == "after"
    assert rung.silent()


def test_an_earlier_one_does_not_wait_for_a_later_one(alarms: Alarms, rung: Rung) -> None:
    alarms.set("later", soon(3600), rung.bell("later"))
    alarms.set("sooner", soon(), rung.bell("sooner"))
    assert rung.next() == "sooner"
    alarms.set("now", time.monotonic(), rung.bell("now"))
    assert rung.next() == "now"
    assert rung.silent()


def test_a_key_has_one_alarm_the_last(alarms: Alarms, rung: Rung) -> None:
    def work() -> None:
        alarms.set("it", time.monotonic(), rung.bell("first"))
        alarms.set("it", soon(), rung.bell("second"))

    alarms.set("work", time.monotonic(), work)
    assert rung.next() == "second"
    assert rung.silent()


def test_one_that_rings_may_set_itself_and_others(alarms: Alarms, rung: Rung) -> None:
    times: Iterator[int] = iter(range(3))

    def again() -> None:
        left = next(times, None)
        if left is None:
            rung.bell("over")()
        else:
            alarms.set("it", time.monotonic(), again)

    alarms.set("it", time.monotonic(), again)
    assert rung.next() == "over"


def test_one_that_fails_is_shown_and_keeps_no_other(
    alarms: Alarms, rung: Rung, monkeypatch: pytest.MonkeyPatch
) -> None:
    shown: SimpleQueue[object] = SimpleQueue()
    monkeypatch.setattr(threading, "excepthook", lambda failure: shown.put(failure.exc_value))

    def fail() -> None:
        raise ValueError("a test")

    alarms.set("failing", time.monotonic(), fail)
    assert isinstance(shown.get(timeout=PATIENCE_S), ValueError)
    alarms.set("other", time.monotonic(), rung.bell("other"))
    assert rung.next() == "other"


def test_threads_at_once_lose_none(alarms: Alarms, rung: Rung) -> None:
    def work(place: int) -> None:
        for number in range(100):
            alarms.set((place, number), soon(), rung.bell(f"{place} {number}"))
            if number % 2:
                alarms.cancel((place, number))

    workers = [threading.Thread(target=work, args=(place,)) for place in range(4)]
    for it in workers:
        it.start()
    for it in workers:
        it.join()
    kept = {f"{place} {number}" for place in range(4) for number in range(0, 100, 2)}
    names: set[str] = set()
    while not kept <= names:
        names.add(rung.next())
