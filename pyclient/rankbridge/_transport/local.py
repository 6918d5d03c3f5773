"""Streams without gRPC, to ranks on this host: where they are, and how messages follow one another on them.

A message is its length, 4 bytes in network order, and an ``ExecuteRequest`` or ``ExecuteResponse``. A rank ends a
stream with a message of no bytes.
"""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Sequence
from typing import Generic, Protocol, TypeVar

from rankbridge._transport.framing import MAX_MESSAGE_BYTES, StreamLost
from rankbridge._transport.targets import socket_path

LENGTH = 4
"""Bytes before a message that tell its own."""
_SUFFIX = ".stream"


def dial(target: str) -> socket.socket | None:
    """Connects to where a rank has its streams without gRPC. None: it has none, or none that this process reaches.

    Args:
        target: The rank's gRPC target.

    Returns:
        A socket that does not block.
    """
    path = socket_path(target)
    if not path:
        return None
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        # One that has as many callers waiting as it takes, as when its rank is stopped, is no reason to wait.
        sock.setblocking(False)
        sock.connect(path + _SUFFIX)
    except (OSError, ValueError):
        sock.close()
        return None
    return sock


def framed(body: bytes) -> bytes:
    """Makes a message as it goes over the connection."""
    return len(body).to_bytes(LENGTH, "big") + body


def length_of(head: bytes | bytearray) -> int:
    """Reads a message's length.

    Raises:
        StreamLost: That is none.
    """
    length = int.from_bytes(head, "big")
    if length > MAX_MESSAGE_BYTES:
        raise StreamLost(f"a message of {length} bytes is none of a rank's")
    return length


class _Local(Protocol):
    """A stream that is a connection of its own."""

    @property
    def over(self) -> bool:
        """Whether the connection has ended."""

    def hang_up(self) -> None:
        """Ends the connection: what was sent fails, and is withdrawn where it was not admitted."""


L = TypeVar("L", bound=_Local)


class LocalStreams(Generic[L]):
    """The streams without gRPC that a gang's client has opened. Thread-safe."""

    def __init__(self, targets: Sequence[str], made: Callable[[socket.socket], L]) -> None:
        """None yet.

        Args:
            targets: gRPC target of each rank; none of those that are asked by gRPC alone.
            made: Makes a stream of a connection.
        """
        self._targets = targets
        self._made = made
        self._lock = threading.Lock()
        self._opened: list[L] = []
        self._closed = False

    def open(self, rank: int) -> L | None:
        """Opens one to a rank. None: that cannot be."""
        sock = dial(self._targets[rank]) if self._targets else None
        if sock is None:
            return None
        opened = self._made(sock)
        with self._lock:
            self._opened = [*(it for it in self._opened if not it.over), opened]
            closed = self._closed
        if closed:
            opened.hang_up()
        return opened

    def close(self) -> None:
        """Hangs up."""
        with self._lock:
            self._closed = True
            opened, self._opened = self._opened, []
        for it in opened:
            it.hang_up()
