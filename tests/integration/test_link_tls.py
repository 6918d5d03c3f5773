"""Control links that speak TLS, between ranks on the fake backend, and strangers on their ports."""

from __future__ import annotations

import select
import socket
import ssl
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from tests.support.certificates import Certificate, self_signed, signed
from tests.support.local_gang import LocalGang, a_call
from tests.support.tasks import error_of

from rankbridge_server.core.activity import Activity, Doing
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
from rankbridge_server.links.sockets import SocketLinkMaker, SocketLinks
from rankbridge_server.links.tls import LinkTls, TlsSocket

TIMEOUT_S = 60
# Nobody is lost here for being slow; who is gone is seen by the end of its links.
PATIENT = Heartbeat(misses=300)


@dataclass(frozen=True)
class Sides:
    """TLS of ranks that show certificates, of ranks that demand them, and of somebody whom nobody vouches for."""

    showing: LinkTls
    demanding: LinkTls
    stranger: LinkTls


@pytest.fixture(scope="module")
def sides(tmp_path_factory: pytest.TempPathFactory) -> Sides:
    directory = tmp_path_factory.mktemp("certificates")
    ca = self_signed(directory, "ca")
    rank, stranger = signed(directory, "rank", ca), self_signed(directory, "stranger")

    def load(it: Certificate, vouches: Certificate, client_ca: Path | None = None) -> LinkTls:
        return LinkTls.load(it.cert, it.key, vouches.cert, client_ca)

    return Sides(load(rank, ca), load(rank, ca, ca.cert), load(stranger, stranger))


@pytest.fixture(params=["showing", "demanding"])
def gang(request: pytest.FixtureRequest, sides: Sides) -> Iterator[LocalGang]:
    tls: LinkTls = getattr(sides, request.param)
    it = LocalGang(3, links=lambda rank: maker(tls))
    yield it
    close(it)


def maker(tls: LinkTls | None) -> LinkMaker:
    return SocketLinkMaker("127.0.0.1:0", heartbeat=PATIENT, tls=None if tls is None else lambda: tls)


def close(gang: LocalGang) -> None:
    for rank in gang.ranks:
        rank.close("the test is over")


def works(gang: LocalGang) -> bool:
    return gang.run(barrier, [Barrier()] * len(gang.ranks)) == [None] * len(gang.ranks)


def idle(_: str) -> Activity:
    """Has no call."""
    return Activity(doing=Doing.IDLE)


def ignored(*_: object) -> None:
    """Whatever the links report."""


def links_of(gang: LocalGang, rank: int) -> SocketLinks:
    links = gang.ranks[rank]._current(0).links
    assert isinstance(links, SocketLinks)
    return links


def dialled(tls: LinkTls, address: str) -> socket.socket:
    return tls.dialled(dial(address, TIMEOUT_S), address, TIMEOUT_S)


def rest(sock: socket.socket) -> bytes:
    """All that is said until the end."""
    sock.settimeout(TIMEOUT_S)
    said = b""
    try:
        while piece := sock.recv(65536):
            said += piece
    except ConnectionResetError:
        pass
    return said


def test_operations_are_admitted_over_tls(gang: LocalGang) -> None:
    group_links = [links_of(gang, rank)._groups["world"] for rank in range(3)]
    assert [len(each.links) for each in group_links] == [2, 1, 1]
    assert all(isinstance(link.socket, TlsSocket) for each in group_links for link in each.links)
    inputs = [gang.full_on(rank, rank) for rank in range(3)]
    for _ in range(50):
        outcomes = gang.run(all_reduce, [AllReduce(it.id, ReduceOp.SUM, False) for it in inputs])
        assert [gang.floats(it) for it in outcomes if isinstance(it, Ref)] == [[3.0, 3.0]] * 3


def test_groups_are_made_and_the_gang_is_formed_again_over_tls(gang: LocalGang) -> None:
    for number in range(2, 6):
        assert gang.form().generation == number
        gang.run(new_group, [NewGroup("tail", (2, 1))] * 3)
        assert gang.run(barrier, [None, Barrier(), Barrier()], group="tail") == [None, None]
        assert works(gang)


def test_a_missing_rank_is_named_over_tls(gang: LocalGang) -> None:
    for outcome in gang.run(barrier, [Barrier(), Barrier(), None], timeout=1.0):
        assert isinstance(outcome, BridgeError)
        assert outcome.failure.code is ErrorCode.PEER_MISSING
    assert works(gang)


@pytest.mark.parametrize("lost", [1, 2])
def test_a_closed_tls_link_fails_every_pending_call_and_names_the_rank(gang: LocalGang, lost: int) -> None:
    survivors = [rank for rank in range(3) if rank != lost]
    tasks = [gang.ranks[rank].submit(barrier, Barrier(), a_call(timeout=60)) for rank in survivors]
    (link,) = links_of(gang, lost)._groups["world"].links
    link.socket.shutdown(socket.SHUT_RDWR)
    for task in tasks:
        error = error_of(task, TIMEOUT_S)
        assert isinstance(error, BridgeError)
        assert error.failure.code is ErrorCode.PEER_LOST
        assert [(it.rank, it.state) for it in error.failure.ranks] == [(lost, RankState.LOST)]


def test_what_somebody_else_puts_on_a_tls_link_is_no_verdict_but_its_end(gang: LocalGang) -> None:
    tasks = [gang.ranks[rank].submit(barrier, Barrier(), a_call(timeout=60)) for rank in (0, 1)]
    (link,) = links_of(gang, 2)._groups["world"].links
    # Past the sealing, straight to the wire.
    socket.socket.sendall(link.socket, b"\x17\x03\x03\x00\x20" + bytes(32))
    for task in tasks:
        error = error_of(task, TIMEOUT_S)
        assert isinstance(error, BridgeError)
        assert error.failure.code is ErrorCode.PEER_LOST
        assert "bad record mac" in str(error)


@pytest.mark.parametrize(
    "data",
    [b"GET / HTTP/1.1\r\n\r\n", wire.hello(1, 1, b"not the secret", "world"), bytes(1000)],
    ids=["http", "hello", "noise"],
)
def test_strangers_in_plain_text_are_shown_out_and_change_nothing(gang: LocalGang, data: bytes) -> None:
    with dial(links_of(gang, 0).address, TIMEOUT_S) as stranger:
        stranger.sendall(data)
        # At most an alert of TLS.
        assert rest(stranger)[:1] in (b"", b"\x15")
    assert works(gang)


def test_strangers_that_leave_the_handshake_halfway_hold_nobody_up(gang: LocalGang, sides: Sides) -> None:
    with ExitStack() as stack:
        for stranger, greeting in halfway(links_of(gang, 0).address, sides, stack):
            stranger.sendall(greeting)
        for _ in range(20):
            assert works(gang)
    assert works(gang)


def test_strangers_that_leave_the_handshake_halfway_are_shown_out(sides: Sides) -> None:
    links = SocketLinkMaker("127.0.0.1:0", heartbeat=Heartbeat(0.05, 2), tls=lambda: sides.showing)(1, 0)
    links.start({0: links.address}, b"secret", ignored, ignored, ignored, idle)
    with ExitStack() as stack:
        for stranger, greeting in halfway(links.address, sides, stack):
            try:
                stranger.sendall(greeting)
            except (BrokenPipeError, ConnectionResetError):
                # Shown out before it said anything.
                continue
            rest(stranger)
    links.end(Ended(0, False, "the test is over"))


def halfway(address: str, sides: Sides, stack: ExitStack) -> Iterator[tuple[socket.socket, bytes]]:
    """Strangers who have connected, and how much of a handshake each is to say: from nothing to the whole greeting."""
    out = ssl.MemoryBIO()
    client = sides.showing.dialling.wrap_bio(ssl.MemoryBIO(), out, server_hostname="127.0.0.1")
    with pytest.raises(ssl.SSLWantReadError):
        client.do_handshake()
    greeting = out.read()
    for said in (0, 1, 5, len(greeting) // 2, len(greeting) - 1, len(greeting)):
        yield stack.enter_context(dial(address, TIMEOUT_S)), greeting[:said]


def test_a_stranger_who_trusts_the_ranks_still_needs_the_secret(gang: LocalGang, sides: Sides) -> None:
    stranger = dialled(sides.showing, links_of(gang, 0).address)
    with stranger:
        stranger.sendall(wire.hello(1, 1, b"not the secret", "world"))
        assert socket.socket.recv(stranger, 1) == b""
    assert works(gang)


def test_who_does_not_trust_the_ranks_does_not_link_with_them(gang: LocalGang, sides: Sides) -> None:
    with pytest.raises(ConnectionError, match=r"TLS: .*(local issuer|self-signed)"):
        dialled(sides.stranger, links_of(gang, 0).address)
    assert works(gang)


def test_who_shows_no_certificate_that_is_demanded_is_shown_out(sides: Sides) -> None:
    gang = LocalGang(2, links=lambda rank: maker(sides.demanding))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    anonymous = replace(sides.showing, dialling=context)
    with dialled(anonymous, links_of(gang, 0).address) as stranger:
        # The secret alone does not help.
        secret = links_of(gang, 0)._secret
        hello = wire.hello(1, 1, secret, "world")
        _try_to_send(stranger, hello)
        assert not _welcomed(stranger)
    assert works(gang)
    close(gang)


def _try_to_send(stranger: socket.socket, data: bytes) -> None:
    try:
        stranger.sendall(data)
    except (BrokenPipeError, ConnectionResetError):
        # It was shown out already.
        return


def _welcomed(stranger: socket.socket) -> bool:
    poll = select.poll()
    poll.register(stranger, select.POLLIN)
    while poll.poll(TIMEOUT_S * 1000):
        try:
            return bool(stranger.recv(1))
        except BlockingIOError:
            continue
        except ConnectionError:
            return False
    raise AssertionError("it was neither welcomed nor shown out")


@pytest.mark.parametrize(
    ("other", "said"),
    [("stranger", "TLS: unable to get local issuer certificate"), (None, "no link with rank 0: ")],
    ids=["another authority", "plain text"],
)
def test_a_member_without_the_right_tls_is_told_and_the_leader_goes_on(
    sides: Sides, other: str | None, said: str
) -> None:
    sidecars = [
        maker(tls)(1, rank)
        for rank, tls in enumerate((sides.showing, sides.showing, getattr(sides, other) if other else None))
    ]
    ended: list[Ended] = []
    for it in sidecars:
        it.start(
            {rank: it.address for rank, it in enumerate(sidecars)},
            b"secret",
            ended.append,
            ignored,
            ignored,
            idle,
        )
    try:
        for it in sidecars[:2]:
            it.add_group("world", [0, 1, 2], TIMEOUT_S)
        with pytest.raises(ConnectionError, match=said):
            sidecars[2].add_group("world", [0, 1, 2], TIMEOUT_S)
        for it in sidecars[:2]:
            it.add_group("pair", [0, 1], TIMEOUT_S)
        assert ended == []
    finally:
        for it in sidecars:
            it.end(Ended(0, False, "the test is over"))


def test_unix_links_stay_plain(sides: Sides, tmp_path: Path) -> None:
    gang = LocalGang(
        2,
        links=lambda rank: SocketLinkMaker(
            f"unix:{tmp_path}/{rank}", "", PATIENT, tls=lambda: sides.demanding
        ),
    )
    assert works(gang)
    links = [link for rank in range(2) for link in links_of(gang, rank)._groups["world"].links]
    assert not any(isinstance(link.socket, TlsSocket) for link in links)
    close(gang)
