"""Whose turn it is to read a party's links."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator

import pytest

from rankbridge_server.links import readers
from rankbridge_server.links.readers import TICK_S, Readers, Turn


class Clock:
    """Time that passes when it is told to."""

    def __init__(self) -> None:
        self.now = 100.0

    def monotonic(self) -> float:
        return self.now


class Party:
    """A party with one link, at which there is something to read."""

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.turn = Turn()
        self.link, self.peer = socket.socketpair()
        self.peer.send(b"x")

    def filenos(self) -> list[int]:
        return [self.link.fileno()]


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(readers, "time", clock)
    return clock


@pytest.fixture
def party() -> Iterator[Party]:
    it = Party()
    yield it
    it.link.close()
    it.peer.close()


@pytest.fixture
def them(clock: Clock) -> Iterator[Readers]:
    it = Readers()
    yield it
    it.close()


def operation(them: Readers, party: Party) -> bool:
    with party.lock:
        them.take(party)
    with party.lock:
        return them.give_back(party)


def test_the_links_thread_reads_until_a_lane_comes(them: Readers, party: Party) -> None:
    them.watch(party)
    assert them.wait(0) == [party.link.fileno()]
    with party.lock:
        them.take(party)
    assert them.wait(0) == []
    assert party.turn.is_mine()


def test_while_a_lane_reads_nobody_else_may(them: Readers, party: Party) -> None:
    lane = threading.Thread(target=lambda: them.take(party))
    lane.start()
    lane.join()
    assert not party.turn.is_mine()
    them.watch(party)
    assert them.wait(0) == []


def test_a_lane_that_came_once_gives_its_links_back_at_once(
    them: Readers, party: Party, clock: Clock
) -> None:
    them.watch(party)
    assert operation(them, party) is False
    assert them.wait(0) == [party.link.fileno()]


def test_a_lane_that_comes_again_and_again_is_left_alone_until_it_has_stopped(
    them: Readers, party: Party, clock: Clock
) -> None:
    operation(them, party)
    clock.now += TICK_S / 2
    assert operation(them, party) is True
    assert not party.turn.watched
    # The thread that was woken ticks: it needs no other word.
    assert them.wait(0) == []
    clock.now += TICK_S / 2
    assert operation(them, party) is False
    clock.now += TICK_S
    assert them.wait(0) == []
    clock.now += TICK_S / 2
    them.wait(0)
    assert them.wait(0) == [party.link.fileno()]


def test_the_links_thread_is_woken_once_however_often_a_lane_comes_before_it_looks(
    them: Readers, party: Party, clock: Clock
) -> None:
    operation(them, party)
    assert [operation(them, party) for _ in range(1000)] == [True] + [False] * 999


def test_a_lane_that_waits_for_long_gives_its_links_back_by_itself(
    them: Readers, party: Party, clock: Clock
) -> None:
    operation(them, party)
    clock.now += TICK_S / 2
    operation(them, party)
    with party.lock:
        them.take(party)
    clock.now += 100 * TICK_S
    assert them.wait(0) == []
    with party.lock:
        assert them.give_back(party) is False
    assert them.wait(0) == [party.link.fileno()]


def test_links_that_ended_meanwhile_are_no_harm(them: Readers, party: Party) -> None:
    them.watch(party)
    party.link.close()
    assert operation(them, party) is False
    assert them.wait(0) == []
