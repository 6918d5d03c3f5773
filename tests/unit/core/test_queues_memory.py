"""Shared memory and what is told of it, without queues."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable, Iterable, Iterator

import pytest

from rankbridge_server.core.queues import host
from rankbridge_server.core.queues.connection import Connection, Listener, Message, MessageKind, connect
from rankbridge_server.core.queues.loop import Loop
from rankbridge_server.core.queues.memory import Ring, ValueFile, make_ring, read_value_file
from rankbridge_server.core.waker import Waker

PATIENCE_S = 30.0


@pytest.fixture
def rings() -> Iterator[tuple[Ring, Ring]]:
    """Both sides of a ring of 3 values of at most 10 bytes."""
    fd = make_ring(10, 3)
    writer, reader = Ring(fd, 10, 3, writable=True), Ring(fd, 10, 3, writable=False)
    os.close(fd)
    yield writer, reader
    writer.close()
    reader.close()


@pytest.fixture
def connections() -> Iterator[tuple[Connection, Connection]]:
    one, other = map(Connection, socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET))
    yield one, other
    one.close()
    other.close()


def test_a_ring_goes_round(rings: tuple[Ring, Ring]) -> None:
    writer, reader = rings
    for number in range(10):
        data = bytes([number]) * (10 - number % 3)
        checksum = writer.write(number, data)
        assert reader.read(number, len(data), checksum) == data


def test_values_of_a_ring_leave_each_other_alone(rings: tuple[Ring, Ring]) -> None:
    writer, reader = rings
    values = [b"a" * 10, b"", b"c" * 10]
    checksums = [writer.write(number, data) for number, data in enumerate(values)]
    assert [reader.read(number, len(values[number]), checksums[number]) for number in range(3)] == values


def test_a_value_that_was_overwritten_is_not_believed(rings: tuple[Ring, Ring]) -> None:
    writer, reader = rings
    checksum = writer.write(0, b"old")
    writer.write(3, b"new")
    with pytest.raises(ValueError, match="value 0"):
        reader.read(0, 3, checksum)


def test_a_reader_cannot_write() -> None:
    fd = make_ring(10, 1)
    reader = Ring(fd, 10, 1, writable=False)
    with pytest.raises(TypeError):
        reader.write(0, b"x")
    reader.close()
    os.close(fd)


def test_nobody_can_take_a_ring_away() -> None:
    fd = make_ring(10, 3)
    with pytest.raises(PermissionError):
        os.ftruncate(fd, 0)
    os.close(fd)


@pytest.mark.parametrize("length", [0, 1, 3_000_000])
def test_a_parcel_is_the_same_for_all_and_for_good(length: int) -> None:
    data = os.urandom(length)
    value_file = ValueFile(data, 2)
    with pytest.raises(PermissionError):
        os.pwrite(value_file.fd, b"x", 0)
    assert [read_value_file(value_file.fd, length) for _ in range(2)] == [data, data]
    value_file.release()
    os.fstat(value_file.fd)
    value_file.release()
    with pytest.raises(OSError, match="descriptor"):
        os.fstat(value_file.fd)


def test_a_parcel_that_is_too_short_is_not_believed() -> None:
    value_file = ValueFile(b"abc", 1)
    with pytest.raises(ValueError, match="3 bytes instead of 4"):
        read_value_file(value_file.fd, 4)
    value_file.release()


def test_notes_come_in_order_and_with_what_belongs_to_them(
    connections: tuple[Connection, Connection],
) -> None:
    one, other = connections
    value_file = ValueFile(b"abc", 1)
    assert one.send(Message(MessageKind.VALUE, 2**63, 2**40, 2**32 - 1))
    assert one.send(Message(MessageKind.FILE, 1), value_file.fd)
    value_file.release()
    assert other.receive() == (Message(MessageKind.VALUE, 2**63, 2**40, 2**32 - 1), None)
    came = other.receive()
    assert came is not None
    message, fd = came
    assert message == Message(MessageKind.FILE, 1)
    assert fd is not None
    assert read_value_file(fd, 3) == b"abc"
    os.close(fd)
    assert other.receive() is None


def test_last_words_are_heard_of_one_that_had_not_listened(
    connections: tuple[Connection, Connection],
) -> None:
    one, other = connections
    assert other.send(Message(MessageKind.READ, 1))
    assert one.send(Message(MessageKind.VALUE, 7))
    assert one.send(Message(MessageKind.BYE))
    one.close()
    assert other.receive() == (Message(MessageKind.VALUE, 7), None)
    assert other.receive() == (Message(MessageKind.BYE), None)
    with pytest.raises(EOFError):
        other.receive()
    with pytest.raises(ConnectionError):
        other.send(Message(MessageKind.READ, 2))


def test_a_line_that_is_full_takes_more_when_it_was_read(connections: tuple[Connection, Connection]) -> None:
    one, other = connections
    sent = 0
    while one.send(Message(MessageKind.VALUE, sent)):
        sent += 1
    assert sent >= 32
    assert other.receive() == (Message(MessageKind.VALUE, 0), None)
    received = 1
    while other.receive() is not None:
        received += 1
    assert received == sent
    assert one.send(Message(MessageKind.VALUE, sent))


@pytest.mark.parametrize("data", [b"x", b"\xff" * 24, b"x" * 100])
def test_what_is_no_message_is_refused(data: bytes) -> None:
    one, other = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    connection = Connection(other)
    one.send(data)
    with pytest.raises(ValueError, match="not a message"):
        connection.receive()
    one.close()
    connection.close()


def test_a_door_lets_those_in_who_are_expected() -> None:
    listener = Listener()
    visitors = [
        connect(listener.address, listener.secret, 1, PATIENCE_S),
        connect(listener.address, listener.secret, 2, PATIENCE_S),
        connect(listener.address, listener.secret, 3, PATIENCE_S),
        connect(listener.address, listener.secret, 1, PATIENCE_S),
        connect(listener.address, bytes(32), 2, PATIENCE_S),
    ]
    silent = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    silent.connect("\0" + listener.address)
    connections = listener.admit([1, 2])
    listener.close()
    assert sorted(connections) == [1, 2]
    for place, visitor in [(1, visitors[0]), (2, visitors[1])]:
        assert visitor.send(Message(MessageKind.READ, place))
        assert connections[place].receive() == (Message(MessageKind.READ, place), None)
    for visitor in visitors[2:]:
        with pytest.raises(EOFError):
            visitor.receive()
    with pytest.raises(ConnectionRefusedError):
        connect(listener.address, listener.secret, 1, PATIENCE_S)
    silent.close()
    for connection in [*visitors, *connections.values()]:
        connection.close()


def test_a_host_is_told_from_others() -> None:
    assert host.host_id() == host.host_id()
    assert len({host.host_id(), host.alone(), host.alone()}) == 3


def test_what_cannot_be_found_out_is_no_shared_host(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(os, "memfd_create")
    assert host.host_id() != host.host_id()


class Counting(Loop):
    def __init__(self, faulty: bool = False) -> None:
        super().__init__("test", Waker())
        self.faulty = faulty
        self.seen: list[str] = []

    def interests(self) -> Iterable[int]:
        return ()

    def due(self) -> float | None:
        return None

    def look(self) -> None:
        if self.faulty:
            raise RuntimeError("a fault")

    def fault(self, error: Exception) -> None:
        self.seen.append(f"fault: {error}")

    def dispose(self) -> None:
        self.seen.append("disposed")

    def say(self, what: str) -> Callable[[], None]:
        return lambda: self.seen.append(what)


def test_a_loop_does_what_it_is_told_until_it_ends() -> None:
    loop = Counting()
    assert loop.call_soon(loop.say("before"))
    loop.start()
    for number in range(1000):
        assert loop.call_soon(loop.say(str(number)))
    loop.call_soon(loop.finish)
    loop.join(PATIENCE_S)
    assert loop.finished
    assert not loop.call_soon(loop.say("after"))
    assert loop.seen == ["before", *map(str, range(1000)), "disposed"]


def test_a_loop_that_fails_says_so_and_lets_go() -> None:
    loop = Counting(faulty=True)
    loop.start()
    loop.call_soon(lambda: None)
    loop.join(PATIENCE_S)
    assert loop.finished
    assert loop.seen == ["fault: a fault", "disposed"]
