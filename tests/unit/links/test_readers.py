"""Whose turn it is to read a group's links."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator

import pytest

from rankbridge_server.links import readers
from rankbridge_server.links.readers import TICK_S, Readers, Turn


class Clock:
    """Time that passes when a test says so."""

    def __init__(self) -> None:
        self.now = 100.0

    def monotonic(self) -> float:
        return self.now


class StubLinks:
    """A group with one link, on which there is something to read."""

    def __init__(self) -> None:
        self.link, self.peer = socket.socketpair()
        self.peer.send(b"x")
        self.turn = Turn(lambda: [self.link.fileno()])
        self.lock = self.turn.lock


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(readers, "time", clock)
    return clock


@pytest.fixture
def stub() -> Iterator[StubLinks]:
    it = StubLinks()
    yield it
    it.link.close()
    it.peer.close()


@pytest.fixture
def all_readers(clock: Clock) -> Iterator[Readers]:
    it = Readers()
    yield it
    it.close()


def operation(all_readers: Readers, stub: StubLinks) -> bool:
    with stub.lock:
        all_readers.take(stub.turn)
    with stub.lock:
        return all_readers.give_back(stub.turn)


def test_the_links_thread_reads_until_a_lane_comes(all_readers: Readers, stub: StubLinks) -> None:
    all_readers.watch(stub.turn)
    assert all_readers.wait(0) == [stub.link.fileno()]
    with stub.lock:
        all_readers.take(stub.turn)
    assert all_readers.wait(0) == []
    assert stub.turn.is_mine()


def test_while_a_lane_reads_nobody_else_may(all_readers: Readers, stub: StubLinks) -> None:
    lane = threading.Thread(target=lambda: all_readers.take(stub.turn))
    lane.start()
    lane.join()
    assert not stub.turn.is_mine()
    all_readers.watch(stub.turn)
    assert all_readers.wait(0) == []


def test_a_lane_that_came_once_gives_its_links_back_at_once(
    all_readers: Readers, stub: StubLinks, clock: Clock
) -> None:
    all_readers.watch(stub.turn)
    assert operation(all_readers, stub) is False
    assert all_readers.wait(0) == [stub.link.fileno()]


def test_a_lane_that_comes_again_and_again_is_left_alone_until_it_has_stopped(
    all_readers: Readers, stub: StubLinks, clock: Clock
) -> None:
    operation(all_readers, stub)
    clock.now += TICK_S / 2
    assert operation(all_readers, stub) is True
    assert not stub.turn.watched
    # The thread that was woken ticks: it needs no other word.
    assert all_readers.wait(0) == []
    clock.now += TICK_S / 2
    assert operation(all_readers, stub) is False
    clock.now += TICK_S
    assert all_readers.wait(0) == []
    clock.now += TICK_S / 2
    all_readers.wait(0)
    assert all_readers.wait(0) == [stub.link.fileno()]


def test_the_links_thread_is_woken_once_however_often_a_lane_comes_before_it_looks(
    all_readers: Readers, stub: StubLinks, clock: Clock
) -> None:
    operation(all_readers, stub)
    assert [operation(all_readers, stub) for _ in range(1000)] == [True] + [False] * 999


def test_a_lane_that_waits_for_long_gives_its_links_back_by_itself(
    all_readers: Readers, stub: StubLinks, clock: Clock
) -> None:
    operation(all_readers, stub)
    clock.now += TICK_S / 2
    operation(all_readers, stub)
    with stub.lock:
        all_readers.take(stub.turn)
    clock.now += 100 * TICK_S
    assert all_readers.wait(0) == []
    with stub.lock:
        assert all_readers.give_back(stub.turn) is False
    assert all_readers.wait(0) == [stub.link.fileno()]


def test_links_are_read_at_once_where_somebody_waits_for_an_answer(
    all_readers: Readers, stub: StubLinks
) -> None:
    operation(all_readers, stub)
    operation(all_readers, stub)
    with stub.lock:
        all_readers.take(stub.turn)
        all_readers.give_back(stub.turn, is_awaited=True)
    assert all_readers.wait(0) == [stub.link.fileno()]


def test_links_that_a_lane_has_left_are_read_at_once_on_demand(all_readers: Readers, stub: StubLinks) -> None:
    operation(all_readers, stub)
    operation(all_readers, stub)
    assert not stub.turn.watched
    with stub.lock:
        all_readers.attend(stub.turn)
    assert all_readers.wait(0) == [stub.link.fileno()]


def test_nobody_else_reads_what_a_lane_reads_on_demand(all_readers: Readers, stub: StubLinks) -> None:
    with stub.lock:
        all_readers.take(stub.turn)
        all_readers.attend(stub.turn)
    assert all_readers.wait(0) == []


def test_links_that_ended_meanwhile_are_no_harm(all_readers: Readers, stub: StubLinks) -> None:
    all_readers.watch(stub.turn)
    stub.link.close()
    assert operation(all_readers, stub) is False
    assert all_readers.wait(0) == []
