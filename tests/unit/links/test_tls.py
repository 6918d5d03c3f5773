"""Sockets that seal what they send: handshakes in pieces, what was tampered with, and strangers."""

from __future__ import annotations

import os
import select
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TypeAlias

import pytest
from tests.support.certificates import Certificate, self_signed, signed

from rankbridge_server.links.link import dial, listen
from rankbridge_server.links.tls import LinkTls, TlsSocket

TIMEOUT_S = 60
# TLS 1.3 seals at most this much at once.
RECORD = 16384

Background: TypeAlias = Callable[[Callable[[], object]], Future[object]]


@dataclass(frozen=True)
class Sides:
    """TLS of a rank, of one that demands certificates, and of those who are none of theirs.

    The impostor and the anonymous trust the ranks' authority; the one shows a certificate that it does not vouch for,
    the other shows none.
    """

    rank: LinkTls
    demanding: LinkTls
    stranger: LinkTls
    impostor: LinkTls
    anonymous: LinkTls


@pytest.fixture(scope="module")
def sides(tmp_path_factory: pytest.TempPathFactory) -> Sides:
    directory = tmp_path_factory.mktemp("certificates")
    ca, other = self_signed(directory, "ca"), self_signed(directory, "other")
    rank, stranger = signed(directory, "rank", ca), signed(directory, "stranger", other)

    def load(it: Certificate, vouches: Certificate, client_ca: Path | None = None) -> LinkTls:
        return LinkTls.load(it.cert, it.key, vouches.cert, client_ca)

    nameless = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    nameless.load_verify_locations(ca.cert)
    return Sides(
        rank=load(rank, ca),
        demanding=load(rank, ca, ca.cert),
        stranger=load(stranger, other),
        impostor=load(stranger, ca),
        anonymous=LinkTls(load(rank, ca).accepting, nameless),
    )


@pytest.fixture
def stack() -> Iterator[ExitStack]:
    with ExitStack() as it:
        yield it


@pytest.fixture
def background(stack: ExitStack) -> Background:
    """Does something meanwhile."""
    pool = stack.enter_context(ThreadPoolExecutor(4))
    return lambda do: pool.submit(do)


def a_pair(stack: ExitStack) -> tuple[socket.socket, socket.socket]:
    """Two ends, which a test may still break when they belong to somebody else."""
    one, other = socket.socketpair()
    stack.callback(one.close)
    stack.callback(other.close)
    return one, other


def dialled(sock: socket.socket, tls: LinkTls, host: str = "localhost") -> TlsSocket:
    return TlsSocket(sock, tls.dialling, server_hostname=host)


def accepted(sock: socket.socket, tls: LinkTls) -> TlsSocket:
    return TlsSocket(sock, tls.accepting, server_side=True)


def through(tls: LinkTls, address: str, timeout: float = TIMEOUT_S) -> socket.socket:
    return tls.dialled(dial(address, TIMEOUT_S), address, timeout)


def soon() -> float:
    return time.monotonic() + TIMEOUT_S


def readable(sock: socket.socket, timeout: float = TIMEOUT_S) -> bool:
    poll = select.poll()
    poll.register(sock, select.POLLIN)
    return bool(poll.poll(timeout * 1000))


def receive(sock: TlsSocket, length: int) -> bytes:
    """This many bytes, as a reader of links gets them: by one look at each time that there is something."""
    received = b""
    while len(received) < length:
        assert readable(sock), f"nothing came after {len(received)} of {length} bytes"
        try:
            piece = sock.recv(RECORD)
        except BlockingIOError:
            continue
        assert piece, "it was closed"
        received += piece
    return received


def shaken(stack: ExitStack, dialling: LinkTls, accepting: LinkTls) -> tuple[TlsSocket, TlsSocket]:
    """Both ends of a link, hands shaken: of who dialled, and of who accepted."""
    one, other = a_pair(stack)
    ours, theirs = dialled(one, dialling), accepted(other, accepting)
    stack.callback(ours.close)
    stack.callback(theirs.close)

    def greet() -> None:
        ours.shake_hands(soon())
        ours.sendall(b"!")

    thread = threading.Thread(target=greet)
    thread.start()
    assert receive(theirs, 1) == b"!"
    thread.join()
    return ours, theirs


@pytest.mark.parametrize("length", [1, 100, RECORD, RECORD + 1, 1_000_000])
def test_what_is_sealed_is_opened(
    sides: Sides, stack: ExitStack, background: Background, length: int
) -> None:
    for sender, receiver in (pair := shaken(stack, sides.rank, sides.rank)), pair[::-1]:
        data = bytes(index % 251 for index in range(length))
        sent = background(partial(sender.sendall, data))
        assert receive(receiver, length) == data
        sent.result(TIMEOUT_S)


def test_nothing_that_can_be_read_is_on_the_wire(sides: Sides, stack: ExitStack) -> None:
    ours, theirs = shaken(stack, sides.rank, sides.rank)
    ours.sendall(b"a secret of the generation")
    wire = socket.socket.recv(theirs, RECORD)
    assert len(wire) > len(b"a secret of the generation")
    assert b"secret" not in wire


def test_one_look_opens_all_that_has_come(sides: Sides, stack: ExitStack) -> None:
    ours, theirs = shaken(stack, sides.rank, sides.rank)
    frames = [bytes([number]) * 10 for number in range(100)]
    for frame in frames:
        ours.sendall(frame)
    # Asked for one byte: whatever stayed behind, no poll would tell of.
    assert theirs.recv(1, socket.MSG_DONTWAIT) == b"".join(frames)
    assert not readable(theirs, 0)
    with pytest.raises(BlockingIOError):
        theirs.recv(RECORD)


def test_half_a_record_is_waited_for(sides: Sides, stack: ExitStack) -> None:
    ours, theirs = shaken(stack, sides.rank, sides.rank)
    ours.sendall(b"in two pieces")
    # Take the record off the wire, and let its halves come by themselves.
    raw, again = a_pair(stack)
    record = socket.socket.recv(theirs, RECORD)
    _replace(theirs, raw)
    again.sendall(record[:7])
    with pytest.raises(BlockingIOError):
        theirs.recv(RECORD)
    again.sendall(record[7:])
    assert theirs.recv(RECORD) == b"in two pieces"


def test_what_was_tampered_with_is_not_opened_and_nothing_after_it(sides: Sides, stack: ExitStack) -> None:
    ours, theirs = shaken(stack, sides.rank, sides.rank)
    ours.sendall(b"all agree")
    record = bytearray(socket.socket.recv(theirs, RECORD))
    record[-1] ^= 1
    ours.sendall(b"and go on")
    after = socket.socket.recv(theirs, RECORD)
    raw, again = a_pair(stack)
    _replace(theirs, raw)
    again.sendall(record)
    with pytest.raises(ConnectionError, match=r"TLS: .*bad record mac"):
        theirs.recv(RECORD)
    again.sendall(after)
    for _ in range(2):
        with pytest.raises(ConnectionError, match="bad record mac"):
            theirs.recv(RECORD)
    with pytest.raises(ConnectionError, match="bad record mac"):
        theirs.sendall(b"nor is anything said")


def test_a_record_that_comes_twice_is_not_opened_again(sides: Sides, stack: ExitStack) -> None:
    ours, theirs = shaken(stack, sides.rank, sides.rank)
    ours.sendall(b"once")
    record = socket.socket.recv(theirs, RECORD)
    raw, again = a_pair(stack)
    _replace(theirs, raw)
    again.sendall(record)
    assert theirs.recv(RECORD) == b"once"
    again.sendall(record)
    with pytest.raises(ConnectionError, match="bad record mac"):
        theirs.recv(RECORD)


def _replace(sock: socket.socket, by: socket.socket) -> None:
    """Let another socket be behind this one's file descriptor."""
    os.dup2(by.fileno(), sock.fileno())


def test_the_accepting_side_never_waits_however_small_the_pieces(sides: Sides, stack: ExitStack) -> None:
    stranger, other = a_pair(stack)
    theirs = accepted(other, sides.demanding)
    stack.callback(theirs.close)
    into, out = ssl.MemoryBIO(), ssl.MemoryBIO()
    client = sides.rank.dialling.wrap_bio(into, out, server_hostname="localhost")
    looks = 0
    while True:
        try:
            client.do_handshake()
            break
        except ssl.SSLWantReadError:
            looks += _byte_by_byte(stranger, out.read(), theirs)
            into.write(stranger.recv(1 << 20, socket.MSG_DONTWAIT))
    client.write(b"hello")
    pieces = out.read()
    looks += _byte_by_byte(stranger, pieces[:-1], theirs)
    stranger.sendall(pieces[-1:])
    assert theirs.recv(RECORD) == b"hello"
    assert looks > 500


def _byte_by_byte(stranger: socket.socket, data: bytes, theirs: TlsSocket) -> int:
    for byte in data:
        stranger.sendall(bytes([byte]))
        with pytest.raises(BlockingIOError):
            theirs.recv(RECORD)
        with pytest.raises(BlockingIOError):
            theirs.recv(RECORD)
    return len(data)


def test_nothing_is_said_before_the_handshake(sides: Sides, stack: ExitStack) -> None:
    one, other = a_pair(stack)
    theirs = accepted(other, sides.rank)
    stack.callback(theirs.close)
    with pytest.raises(ConnectionError, match="before the handshake"):
        theirs.sendall(b"welcome")
    assert not readable(one, 0)


@pytest.mark.parametrize(
    ("dialling", "host", "said"),
    [
        ("stranger", "localhost", "unable to get local issuer"),
        ("rank", "elsewhere", "not valid for 'elsewhere'"),
    ],
)
def test_who_dials_refuses_whom_it_does_not_trust(
    sides: Sides,
    stack: ExitStack,
    background: Background,
    dialling: str,
    host: str,
    said: str,
) -> None:
    one, other = a_pair(stack)
    ours, theirs = dialled(one, getattr(sides, dialling), host), accepted(other, sides.rank)
    stack.callback(ours.close)
    stack.callback(theirs.close)
    shaking = background(lambda: ours.shake_hands(soon()))
    assert readable(theirs)
    with pytest.raises(BlockingIOError):
        theirs.recv(RECORD)
    error = shaking.exception(TIMEOUT_S)
    assert isinstance(error, ConnectionError)
    assert said in str(error)
    # The accepting side hears of it, and opens nothing.
    assert readable(theirs)
    with pytest.raises(ConnectionError, match=r"TLS: .*alert"):
        theirs.recv(RECORD)


@pytest.mark.parametrize(
    ("dialling", "said", "received_text"),
    [
        ("impostor", "unable to get local issuer", "unknown ca"),
        ("anonymous", "peer did not return a certificate", "certificate required"),
    ],
)
def test_who_accepts_refuses_whom_it_does_not_trust(
    sides: Sides, stack: ExitStack, background: Background, dialling: str, said: str, received_text: str
) -> None:
    one, other = a_pair(stack)
    ours, theirs = dialled(one, getattr(sides, dialling)), accepted(other, sides.demanding)
    stack.callback(ours.close)
    stack.callback(theirs.close)
    shaking = background(lambda: ours.shake_hands(soon()))
    assert readable(theirs)
    with pytest.raises(BlockingIOError):
        theirs.recv(RECORD)
    # In TLS 1.3 who dials has done its part before it is verified.
    shaking.result(TIMEOUT_S)
    assert readable(theirs)
    with pytest.raises(ConnectionError, match=f"TLS: {said}"):
        theirs.recv(RECORD)
    assert readable(ours)
    with pytest.raises(ConnectionError, match=f"TLS: .*{received_text}"):
        ours.recv(RECORD)


@pytest.mark.parametrize(
    "data",
    [b"GET / HTTP/1.1\r\n\r\n", b"\x00\x00\x00\x05hello", b"\xff" * 100_000],
    ids=["http", "frame", "noise"],
)
def test_a_stranger_in_plain_text_is_told_nothing_but_an_alert(
    sides: Sides, stack: ExitStack, background: Background, data: bytes
) -> None:
    stranger, other = a_pair(stack)
    theirs = accepted(other, sides.rank)
    # Of more than a socket holds, the rest is never taken.
    sending = background(lambda: stranger.sendall(data))
    assert readable(theirs)
    with pytest.raises(ConnectionError, match="TLS: "):
        theirs.recv(RECORD)
    with pytest.raises(ConnectionError, match="TLS: "):
        theirs.recv(RECORD)
    theirs.shutdown(socket.SHUT_RDWR)
    theirs.close()
    assert isinstance(sending.exception(TIMEOUT_S), OSError | None)
    assert _rest(stranger)[:1] in (b"", b"\x15")


def test_a_stranger_of_older_tls_is_shown_out(sides: Sides, stack: ExitStack) -> None:
    stranger, other = a_pair(stack)
    theirs = accepted(other, sides.rank)
    stack.callback(theirs.close)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.maximum_version = ssl.TLSVersion.TLSv1_2
    out = ssl.MemoryBIO()
    client = context.wrap_bio(ssl.MemoryBIO(), out, server_hostname="localhost")
    with pytest.raises(ssl.SSLWantReadError):
        client.do_handshake()
    stranger.sendall(out.read())
    with pytest.raises(ConnectionError, match="TLS: unsupported protocol"):
        theirs.recv(RECORD)


def test_an_end_is_an_end_in_a_handshake_and_after(sides: Sides, stack: ExitStack) -> None:
    one, other = a_pair(stack)
    early = accepted(other, sides.rank)
    stack.callback(early.close)
    one.close()
    assert early.recv(RECORD) == b""
    ours, theirs = shaken(stack, sides.rank, sides.rank)
    ours.sendall(b"last words")
    ours.shutdown(socket.SHUT_WR)
    assert [theirs.recv(RECORD) for _ in range(3)] == [b"last words", b"", b""]
    theirs.sendall(b"and mine")
    assert ours.recv(RECORD) == b"and mine"


def test_one_sends_while_another_receives(sides: Sides, stack: ExitStack, background: Background) -> None:
    ours, theirs = shaken(stack, sides.rank, sides.demanding)
    count, size = 2_000, 1_000

    def send(sock: TlsSocket, sender: int) -> None:
        for _ in range(count):
            sock.sendall(bytes([sender]) * size)

    senders = [background(partial(send, it, n)) for it in (ours, theirs) for n in (1, 2)]
    receiving = background(lambda: receive(ours, 2 * count * size))
    for received in (receive(theirs, 2 * count * size), receiving.result(TIMEOUT_S)):
        assert isinstance(received, bytes)
        frames = [received[start : start + size] for start in range(0, len(received), size)]
        assert sorted(frames) == [bytes([1]) * size] * count + [bytes([2]) * size] * count
    for sender in senders:
        sender.result(TIMEOUT_S)


def test_ways_around_the_sealing_are_closed(sides: Sides, stack: ExitStack) -> None:
    ours, theirs = shaken(stack, sides.rank, sides.rank)
    with pytest.raises(NotImplementedError):
        ours.send(b"in plain text")
    with pytest.raises(NotImplementedError):
        theirs.recv_into(bytearray(10))


@pytest.fixture
def listener(stack: ExitStack) -> tuple[socket.socket, str]:
    """A link port, and its address."""
    sock, address = listen("127.0.0.1:0")
    stack.callback(sock.close)
    return sock, address


def test_dialling_shakes_hands_and_sends_nothing_else(
    sides: Sides, stack: ExitStack, background: Background, listener: tuple[socket.socket, str]
) -> None:
    sock, address = listener
    dialling = background(lambda: through(sides.rank, address))
    theirs = sides.demanding.accepted(sock.accept()[0])
    assert isinstance(theirs, TlsSocket)
    stack.callback(theirs.close)
    assert readable(theirs)
    with pytest.raises(BlockingIOError):
        theirs.recv(RECORD)
    ours = dialling.result(TIMEOUT_S)
    assert isinstance(ours, TlsSocket)
    ours.sendall(b"hello")
    assert receive(theirs, 5) == b"hello"
    ours.close()


def test_who_dials_waits_for_a_silent_side_no_longer_than_told(
    sides: Sides, listener: tuple[socket.socket, str]
) -> None:
    _, address = listener
    with pytest.raises(ConnectionError, match=f"{address}: TLS: no handshake in time"):
        through(sides.rank, address, 0.2)


@pytest.mark.parametrize(
    ("answer", "said"),
    [(b"", "it hung up during the handshake"), (b"HTTP/1.1 400\r\n\r\n", "wrong version number")],
)
def test_who_dials_a_side_without_tls_is_told(
    sides: Sides, background: Background, listener: tuple[socket.socket, str], answer: bytes, said: str
) -> None:
    sock, address = listener
    dialling = background(lambda: through(sides.rank, address))
    theirs, _ = sock.accept()
    with theirs:
        assert theirs.recv(RECORD)
        theirs.sendall(answer)
        theirs.shutdown(socket.SHUT_WR)
        error = dialling.exception(TIMEOUT_S)
    assert isinstance(error, ConnectionError)
    assert address in str(error)
    assert said in str(error)


def test_unix_sockets_are_dialled_in_plain_text(sides: Sides, tmp_path: Path) -> None:
    sock, address = listen(f"unix:{tmp_path}/links")
    with sock, through(sides.rank, address) as ours:
        assert not isinstance(ours, TlsSocket)
        theirs = sides.rank.accepted(sock.accept()[0])
        with theirs:
            assert not isinstance(theirs, TlsSocket)
            ours.sendall(b"hello")
            assert theirs.recv(RECORD) == b"hello"


def _rest(sock: socket.socket) -> bytes:
    sock.settimeout(TIMEOUT_S)
    try:
        return sock.recv(RECORD)
    except ConnectionResetError:
        return b""
