"""The two ends of a queue in shared memory, each in a process of its own, and what a killed one leaves behind."""

from __future__ import annotations

import multiprocessing
import os
import random
import re
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from typing import Any

import pytest
from tests.support.proc import open_files
from tests.support.waiting import until

from rankbridge_server.core.errors import BridgeError, ErrorCode, Place
from rankbridge_server.core.operations.outcome import Packed
from rankbridge_server.core.queues.posts import Posts
from rankbridge_server.core.queues.reading import NearReadingEnd
from rankbridge_server.core.queues.sharing import SharedMemorySetup
from rankbridge_server.core.queues.view import QueueView
from rankbridge_server.core.queues.writing import WritingEnd
from rankbridge_server.core.task import Task
from rankbridge_server.core.waker import Waker

PATIENCE_S = 60.0
SHORT_S = 0.3
CHUNK = 1000
CHUNKS = 4
COUNT = 4000
WRITER, READER = 0, 1
# A flag of a socket that listens.
ACCEPTS = 0x10000
ENDED = BridgeError.of(ErrorCode.ABORTED, "the test is over")


def value(number: int) -> bytes:
    """Of a length around the room for one, mostly."""
    numbers = random.Random(number)
    lengths = (0, 1, numbers.randrange(CHUNK), CHUNK - 1, CHUNK, CHUNK + 1, numbers.randrange(100 * CHUNK))
    return numbers.randbytes(numbers.choice(lengths))


def met(me: int, peer: Connection) -> SharedMemorySetup:
    """Meet with the other process; a round is an exchange of what both give."""

    def agree(_: str, given: bytes) -> list[bytes]:
        peer.send_bytes(given)
        assert peer.poll(PATIENCE_S), "the other process has not come"
        theirs = peer.recv_bytes()
        return [given, theirs] if me == WRITER else [theirs, given]

    setup = SharedMemorySetup(VIEW, me, (READER,))
    setup.meet(agree, PATIENCE_S)
    assert setup.shared == (READER,)
    return setup


VIEW = QueueView("q", "world", WRITER, (READER,), (READER,), CHUNK, CHUNKS)


def writing_end(it: SharedMemorySetup) -> WritingEnd:
    nowhere: Any = None
    posts = Posts("q", it.channel, Place(), nowhere, nowhere)
    end = WritingEnd(VIEW, (0, 1), Waker(), it.ring, it.connections, (), posts)
    end.start()
    return end


def reading_end(it: SharedMemorySetup) -> NearReadingEnd:
    assert it.ring is not None
    end = NearReadingEnd(VIEW, WRITER, Waker(), it.connections[WRITER], it.ring)
    end.start()
    return end


def write(end: WritingEnd, data: bytes, timeout: float = PATIENCE_S) -> Task:
    task = Task(Place(), timeout, "")
    end.enqueue(data, task)
    return task


def read(end: NearReadingEnd, timeout: float = PATIENCE_S) -> Task:
    task = Task(Place(), timeout, "")
    end.dequeue(task)
    return task


def read_all(peer: Connection) -> None:
    """Read until there are no more, several at once; tell how many were as they should be."""
    end = reading_end(met(READER, peer))
    tasks = [read(end) for _ in range(8)]
    for number in range(COUNT):
        assert tasks.pop(0).wait() == Packed(value(number)), f"value {number} is another"
        tasks.append(read(end))
    with pytest.raises(BridgeError) as raised:
        tasks.pop(0).wait()
    assert raised.value.failure.code is ErrorCode.ABORTED
    peer.send(COUNT)


def read_some(peer: Connection) -> None:
    """Read three, say so, and do no more."""
    end = reading_end(met(READER, peer))
    for _ in range(3):
        read(end).wait()
    peer.send("read")
    peer.poll(PATIENCE_S)


def write_some(peer: Connection) -> None:
    """Write three, say so, and do no more."""
    end = writing_end(met(WRITER, peer))
    for number in range(3):
        write(end, bytes([number]) * (CHUNK + number)).wait()
    peer.send("written")
    peer.poll(PATIENCE_S)


@contextmanager
def child(does: Any) -> Iterator[tuple[Connection, BaseProcess]]:
    context = multiprocessing.get_context("spawn")
    mine, its = context.Pipe()
    process = context.Process(target=does, args=(its,), daemon=True)
    process.start()
    its.close()
    try:
        yield mine, process
    finally:
        mine.close()
        process.kill()
        process.join(PATIENCE_S)


def message(peer: Connection) -> Any:
    assert peer.poll(PATIENCE_S), "the other process says nothing"
    return peer.recv()


def shared_memory() -> list[str]:
    """What this process has open of it, or mapped."""
    with open("/proc/self/maps") as maps:
        return [it for it in [*open_files(), *maps] if re.search("memfd:rankbridge-(queue|value)", it)]


def name_of(it: SharedMemorySetup) -> str:
    """Of the listener at which they met."""
    (connection,) = it.connections.values()
    with socket.socket(fileno=os.dup(connection.fileno())) as sock:
        address = sock.getsockname() or sock.getpeername()
    assert isinstance(address, bytes)
    return address[1:].decode()


def named(name: str, *, open_only: bool = False) -> list[str]:
    """What everybody can see: sockets of that name, and files. `open_only`: sockets that accept connections."""
    with open("/proc/net/unix") as sockets:
        connections = [connection.split() for connection in sockets if name in connection]
    seen = [connection[-1] for connection in connections if not open_only or int(connection[3], 16) & ACCEPTS]
    return seen + [it for it in os.listdir("/dev/shm") if "rankbridge" in it]


def test_all_values_go_through_at_full_speed() -> None:
    with child(read_all) as (peer, _):
        end = writing_end(met(WRITER, peer))
        tasks = [write(end, value(number)) for number in range(64)]
        for number in range(64, COUNT):
            tasks.pop(0).wait()
            tasks.append(write(end, value(number)))
        for task in tasks:
            task.wait()
        end.shut_down()
        assert message(peer) == COUNT
    until(lambda: end.finished)
    assert not shared_memory()


def test_nothing_is_left_of_a_reader_that_was_killed() -> None:
    with child(read_some) as (peer, process):
        setup = met(WRITER, peer)
        name = name_of(setup)
        end = writing_end(setup)
        assert named(name)
        assert not named(name, open_only=True)
        # One more is with the reader, and never read; all of them are beside the ring.
        for number in range(3 + CHUNKS):
            write(end, bytes(CHUNK + 1 + number)).wait()
        assert message(peer) == "read"
        waits = write(end, b"", PATIENCE_S)
        process.kill()
        process.join(PATIENCE_S)
        assert process.exitcode == -9
        it = write(end, b"", SHORT_S)
        with pytest.raises(BridgeError) as raised:
            it.wait()
        assert raised.value.failure.code is ErrorCode.PEER_MISSING
        assert not waits.done
        end.close(ENDED)
        with pytest.raises(BridgeError, match="the test is over"):
            waits.wait()
    until(lambda: end.finished)
    assert not shared_memory()
    assert not named(name)


def test_what_a_killed_writer_wrote_is_read_and_nothing_is_left_of_it() -> None:
    with child(write_some) as (peer, process):
        setup = met(READER, peer)
        name = name_of(setup)
        end = reading_end(setup)
        assert message(peer) == "written"
        process.kill()
        process.join(PATIENCE_S)
        for number in range(3):
            assert read(end).wait() == Packed(bytes([number]) * (CHUNK + number))
        with pytest.raises(BridgeError) as raised:
            read(end, SHORT_S).wait()
        assert raised.value.failure.code is ErrorCode.PEER_MISSING
        waits = read(end)
        end.close(ENDED)
        with pytest.raises(BridgeError, match="the test is over"):
            waits.wait()
    until(lambda: end.finished)
    assert not shared_memory()
    assert not named(name)
