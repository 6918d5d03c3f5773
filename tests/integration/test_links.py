"""Control links over real sockets, between ranks on the fake backend."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest
from tests.support.local_gang import LocalGang, a_call
from tests.support.tasks import error_of
from tests.support.waiting import until

from rankbridge_server.core.coordinator import ReduceOp
from rankbridge_server.core.errors import BridgeError, ErrorCode, RankState
from rankbridge_server.core.groups.operations import NewGroup, new_group
from rankbridge_server.core.links import Ended, LinkMaker
from rankbridge_server.core.operations.agreements import Barrier, barrier
from rankbridge_server.core.operations.reductions import AllReduce, all_reduce
from rankbridge_server.core.refs.refs import Ref
from rankbridge_server.links import wire
from rankbridge_server.links.heartbeat import Heartbeat
from rankbridge_server.links.link import dial
from rankbridge_server.links.readers import Readers
from rankbridge_server.links.sockets import SocketLinkMaker, SocketLinks

TIMEOUT_S = 10
# Nobody is lost here for being slow; who is gone is seen by the end of its links.
PATIENT = Heartbeat(misses=300)


@pytest.fixture(params=["unix", "tcp"])
def maker(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[int], LinkMaker]:
    if request.param == "tcp":
        return lambda rank: SocketLinkMaker("127.0.0.1:0", heartbeat=PATIENT)
    return lambda rank: SocketLinkMaker(f"unix:{tmp_path}/links-{rank}", heartbeat=PATIENT)


@pytest.fixture
def gang(maker: Callable[[int], LinkMaker]) -> Iterator[LocalGang]:
    it = LocalGang(3, links=maker)
    yield it
    for rank in it.ranks:
        rank.close("the test is over")


def works(gang: LocalGang) -> bool:
    return gang.run(barrier, [Barrier()] * len(gang.ranks)) == [None] * len(gang.ranks)


def barrier_without(gang: LocalGang, missing: int) -> list[BridgeError]:
    """The errors of those who come to a barrier, about the one who does not."""
    first, last = (rank for rank in range(3) if rank != missing)
    tasks = [gang.ranks[first].submit(barrier, Barrier(), a_call(timeout=60))]
    # Who has the short timeout comes last, so that nobody else is missing.
    until(lambda: links_of(gang, 0).group("world").waiting() is not None)
    tasks.append(gang.ranks[last].submit(barrier, Barrier(), a_call(timeout=1.0)))
    errors = [error_of(task, TIMEOUT_S) for task in tasks]
    assert all(errors)
    return [it for it in errors if it]


def links_of(gang: LocalGang, rank: int) -> SocketLinks:
    links = gang.ranks[rank]._current(0).links
    assert isinstance(links, SocketLinks)
    return links


def test_operations_are_admitted_over_sockets(gang: LocalGang) -> None:
    inputs = [gang.full_on(rank, rank) for rank in range(3)]
    for _ in range(50):
        outcomes = gang.run(all_reduce, [AllReduce(it.id, ReduceOp.SUM, False) for it in inputs])
        assert [gang.floats(it) for it in outcomes if isinstance(it, Ref)] == [[3.0, 3.0]] * 3


def test_groups_with_leaders_of_their_own_work_side_by_side(gang: LocalGang) -> None:
    for name, ranks in (("a", (2, 1)), ("b", (1, 2)), ("c", (2, 0, 1))):
        gang.run(new_group, [NewGroup(name, ranks)] * 3)
    for name, members in (("a", {1, 2}), ("b", {1, 2}), ("c", {0, 1, 2})):
        args = [Barrier() if rank in members else None for rank in range(3)]
        assert gang.run(barrier, args, group=name) == [None] * len(members)


def test_a_missing_rank_is_named_at_every_rank_that_came(gang: LocalGang) -> None:
    for error in barrier_without(gang, 2):
        assert error.failure.code is ErrorCode.PEER_MISSING
        missing = [it.rank for it in error.failure.ranks if it.state is RankState.MISSING]
        assert missing == [2]
    assert works(gang)


def test_a_missing_leader_is_named(gang: LocalGang) -> None:
    assert ["missing: rank 0" in str(error) for error in barrier_without(gang, 0)] == [True, True]
    assert works(gang)


@pytest.mark.parametrize("refusing", range(3))
def test_a_released_ref_at_one_rank_fails_the_call_at_all_and_names_that_rank(
    gang: LocalGang, refusing: int
) -> None:
    inputs = gang.full(1)
    gang.ranks[refusing].refs.release("", [inputs[refusing].id])
    args = [AllReduce(it.id, ReduceOp.SUM, False) for it in inputs]
    # Whoever would wait until its timeout waits for longer than any test may take.
    outcomes = gang.run(all_reduce, args, timeout=3600)
    for rank, outcome in enumerate(outcomes):
        assert isinstance(outcome, BridgeError)
        assert (outcome.failure.code, outcome.failure.indefinite) == (ErrorCode.RELEASED_REF, False)
        named = [(it.rank, it.state) for it in outcome.failure.ranks]
        assert named == ([] if rank == refusing else [(refusing, RankState.FAILED)])
    assert works(gang)


@pytest.mark.parametrize("lost", [1, 2])
def test_a_closed_link_fails_every_pending_call_at_once_and_names_the_rank(
    gang: LocalGang, lost: int
) -> None:
    survivors = [rank for rank in range(3) if rank != lost]
    tasks = [gang.ranks[rank].submit(barrier, Barrier(), a_call(timeout=60)) for rank in survivors]
    # What a killed process leaves: a socket that is closed without a word.
    (link,) = links_of(gang, lost)._groups["world"].links
    link.socket.shutdown(socket.SHUT_RDWR)
    for task in tasks:
        error = error_of(task, TIMEOUT_S)
        assert isinstance(error, BridgeError)
        assert error.failure.code is ErrorCode.PEER_LOST
        assert [(it.rank, it.state) for it in error.failure.ranks] == [(lost, RankState.LOST)]


def test_links_that_a_lane_left_alone_are_read_again_when_it_stops_coming(tmp_path: Path) -> None:
    # Often, and so patient that nobody is lost on a busy machine.
    beats = Heartbeat(interval=0.05, misses=1000)
    gang = LocalGang(3, links=lambda rank: SocketLinkMaker(f"unix:{tmp_path}/links-{rank}", heartbeat=beats))
    for _ in range(20):
        assert works(gang)
    sidecars = [links_of(gang, rank) for rank in range(3)]
    links = [link for it in sidecars for link in it._groups["world"].links]
    # Signs of life are heard on every link, though no lane reads them.
    last = [link.last_heard for link in links]
    until(lambda: all(it.last_heard > was for it, was in zip(links, last, strict=True)))
    assert works(gang)
    links[-1].socket.shutdown(socket.SHUT_RDWR)
    until(lambda: all(it._closed for it in sidecars))
    for rank in gang.ranks:
        rank.close("the test is over")


def test_lanes_go_on_while_no_links_thread_gets_to_run(
    gang: LocalGang, monkeypatch: pytest.MonkeyPatch
) -> None:
    held, wait, waits = threading.Event(), Readers.wait, []

    def late(self: Readers, timeout: float) -> Sequence[int]:
        waits.append(threading.get_ident())
        held.wait(TIMEOUT_S)
        return wait(self, timeout)

    monkeypatch.setattr(Readers, "wait", late)
    until(lambda: len(set(waits)) == 3)
    # More operations than a socket holds words of one byte.
    for _ in range(400):
        assert works(gang)
    held.set()
    assert works(gang)


def test_an_abort_reaches_every_rank(gang: LocalGang) -> None:
    task = gang.ranks[2].submit(barrier, Barrier(), a_call(timeout=60))
    gang.ranks[1].abort(1, "enough")
    error = error_of(task, TIMEOUT_S)
    assert isinstance(error, BridgeError)
    assert error.failure.code is ErrorCode.ABORTED
    assert "enough" in error.failure.message


def test_the_gang_is_formed_again_and_again_without_leaving_sockets(gang: LocalGang, tmp_path: Path) -> None:
    inputs = gang.full(1)
    for number in range(2, 12):
        assert gang.form().generation == number
        outcomes = gang.run(all_reduce, [AllReduce(it.id, ReduceOp.SUM, False) for it in inputs])
        assert all(isinstance(it, Ref) for it in outcomes)


@pytest.mark.parametrize(
    "data",
    [
        b"GET / HTTP/1.1\r\n\r\n",
        b"\x00\x00\x00\x03\xff\xff\xff",
        wire.hello(1, 1, b"not the secret", "world"),
        wire.hello(2, 1, b"", "world"),
        wire.welcome(0),
        wire.pack_abort(1, Ended(0, True, "a lie")),
    ],
    ids=["http", "no protobuf", "wrong secret", "wrong generation", "not a hello", "an abort"],
)
def test_strangers_on_a_link_port_are_shown_out_and_change_nothing(gang: LocalGang, data: bytes) -> None:
    with dial(links_of(gang, 0).address, TIMEOUT_S) as stranger:
        stranger.sendall(data)
        assert _rest(stranger) == b""
    assert works(gang)


def test_a_stranger_does_not_make_a_rank_keep_more_than_a_hello(gang: LocalGang) -> None:
    """Of a frame that is longer nothing is read but its length."""
    with dial(links_of(gang, 0).address, TIMEOUT_S) as stranger:
        until(lambda: bool(links_of(gang, 0)._strangers))
        stranger.sendall((wire.MAX_FRAME - 4).to_bytes(4, "big"))
        until(lambda: not links_of(gang, 0)._strangers)
        assert _rest(stranger) == b""
    assert works(gang)
    # A rank's own frames may be as long as ever.
    assert {link.frames.longest for link in links_of(gang, 0).group("world").links} == {wire.MAX_FRAME}


def _rest(sock: socket.socket) -> bytes:
    sock.settimeout(TIMEOUT_S)
    try:
        return sock.recv(1)
    except ConnectionResetError:
        return b""
