"""A rank that gives no sign of life, by a clock that passes only while the links thread waits."""

from __future__ import annotations

import math
import os
import signal
import socket
from collections.abc import Sequence

import pytest

from rankbridge_server.core.links import Ended
from rankbridge_server.links import link as links_link, readers, sockets, wire
from rankbridge_server.links.follower import Follower
from rankbridge_server.links.heartbeat import Heartbeat
from rankbridge_server.links.link import Link
from rankbridge_server.links.pairs import PairLinkMaker, PairListener
from rankbridge_server.links.readers import Readers
from rankbridge_server.links.sockets import SocketLinks

BEATS = Heartbeat(interval=0.2, misses=3)


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def monotonic(self) -> float:
        return self.now


class Peer:
    """The other end of a follower's link. `said`: when it gives its signs of life."""

    def __init__(self, links: SocketLinks, said: Sequence[float], stalls: float = 0.0) -> None:
        mine, self.socket = socket.socketpair()
        self.said = list(said)
        # How much longer than asked the links thread once waits: it did not get to run.
        self.stalls = stalls
        self.link = Link(mine)
        self.link.rank, self.link.group = 7, "world"
        follower = Follower("world", links, links._readers)
        follower.attach(self.link)
        links._groups["world"] = follower
        links._known[self.link.fileno()] = follower, self.link
        links._readers.watch(follower.turn)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    for module in (links_link, readers, sockets):
        monkeypatch.setattr(module, "time", clock)
    return clock


@pytest.fixture
def links() -> SocketLinks:
    return SocketLinks(1, 0, PairListener(PairLinkMaker(), "local:1/0"), BEATS)


def lost(links: SocketLinks, peer: Peer, clock: Clock, monkeypatch: pytest.MonkeyPatch) -> tuple[float, str]:
    """When rank 7 is lost, and why, if it is before it has said all."""
    wait, start = Readers.wait, clock.now
    found: list[tuple[float, str]] = []

    def pass_time(self: Readers, timeout: float) -> Sequence[int]:
        due = clock.now + max(0.0, timeout)
        if peer.said and start + peer.said[0] <= due:
            clock.now = max(clock.now, start + peer.said.pop(0))
            peer.socket.send(wire.BEAT)
        else:
            clock.now = due + peer.stalls
            if peer.stalls:
                # Meanwhile the peer has gone on.
                peer.socket.send(wire.BEAT)
            peer.stalls = 0.0
        return wait(self, 0)

    def over(ended: Ended) -> None:
        assert (ended.rank, ended.lost) == (7, True)
        found.append((clock.now - start, ended.reason))
        links._closed = True

    monkeypatch.setattr(Readers, "wait", pass_time)
    links._ended = over
    links._farewells_said.set()
    links._run()
    peer.socket.close()
    (it,) = found
    return it


class Process:
    """Rank 7's, which runs until `stopped`, in seconds after the beginning."""

    stopped = 0.0


@pytest.fixture(autouse=True)
def process(monkeypatch: pytest.MonkeyPatch, clock: Clock) -> Process:
    it, begun = Process(), clock.now
    monkeypatch.setattr(Link, "other_side_runs", lambda link: clock.now - begun < it.stopped)
    return it


@pytest.mark.parametrize("last", [0.0, 0.05, 0.19, 0.21, 1.01])
def test_a_rank_that_stops_is_lost_as_soon_as_its_time_is_over(
    clock: Clock, links: SocketLinks, monkeypatch: pytest.MonkeyPatch, last: float
) -> None:
    said = [at / 10 for at in range(2, 11, 2) if at / 10 < last]
    peer = Peer(links, [*said, last])
    at, reason = lost(links, peer, clock, monkeypatch)
    assert at == pytest.approx(last + BEATS.patience)
    assert reason == "it gave no sign of life for 0.6 s"


def test_a_rank_that_did_not_get_to_run_itself_blames_nobody(
    clock: Clock, links: SocketLinks, monkeypatch: pytest.MonkeyPatch
) -> None:
    peer = Peer(links, [], stalls=5.0)
    at, _ = lost(links, peer, clock, monkeypatch)
    # The peer spoke last when the stall was over, five seconds after the first beat was due.
    assert at > 5.0 + BEATS.patience - 0.01


def test_a_rank_that_runs_and_says_nothing_is_lost_later(
    clock: Clock, links: SocketLinks, monkeypatch: pytest.MonkeyPatch, process: Process
) -> None:
    process.stopped = math.inf
    at, reason = lost(links, Peer(links, []), clock, monkeypatch)
    assert at == pytest.approx(BEATS.patience + BEATS.doubt)
    assert reason == "it gave no sign of life for 3.0 s"


def test_a_rank_that_ran_and_is_stopped_is_lost_as_soon_as_it_is_seen(
    clock: Clock, links: SocketLinks, monkeypatch: pytest.MonkeyPatch, process: Process
) -> None:
    process.stopped = 0.9
    at, _ = lost(links, Peer(links, []), clock, monkeypatch)
    assert 0.9 <= at <= 0.9 + BEATS.interval


def test_a_rank_that_was_starved_is_not_lost(
    clock: Clock, links: SocketLinks, monkeypatch: pytest.MonkeyPatch, process: Process
) -> None:
    starved = process.stopped = BEATS.patience + 0.1
    at, _ = lost(links, Peer(links, [starved]), clock, monkeypatch)
    assert at == pytest.approx(starved + BEATS.patience)


def test_the_state_of_the_other_side_is_that_of_its_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    mine, theirs = socket.socketpair()
    child = os.fork()
    if child == 0:
        signal.pause()
    with theirs, socket.socket() as tcp:
        assert Link(mine).other_side_runs()
        assert not Link(tcp).other_side_runs()
        monkeypatch.setattr(links_link, "peer_of", lambda sock: (child, os.geteuid()))
        assert Link(mine).other_side_runs()
        assert not Link(mine).other_side_is_stopped()
        os.kill(child, signal.SIGSTOP)
        os.waitid(os.P_PID, child, os.WSTOPPED)
        assert not Link(mine).other_side_runs()
        assert Link(mine).other_side_is_stopped()
        assert not Link(tcp).other_side_is_stopped()
        os.kill(child, signal.SIGKILL)
        os.waitid(os.P_PID, child, os.WEXITED | os.WNOWAIT)
        assert not Link(mine).other_side_runs()
        os.waitpid(child, 0)
        assert not Link(mine).other_side_runs()
    mine.close()
