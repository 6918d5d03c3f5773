"""Messages between the writer and a reader on one host."""

from __future__ import annotations

import errno
import secrets
import select
import socket
import struct
from collections.abc import Collection
from enum import IntEnum
from typing import NamedTuple

from ..peer_user import is_trusted
from .memory import close_all

STALL_S = 0.05
"""Seconds after which a message is sent again that the socket could not take."""

_FORMAT = struct.Struct("=BxxxIQQ")
_SECRET_BYTES = 32
_HELLO = struct.Struct(f"={_SECRET_BYTES}sI")
_BACKLOG = 1024
# ETOOMANYREFS: too many file descriptors are in flight.
_FULL = {errno.EAGAIN, errno.ENOBUFS, errno.ENOMEM, errno.ETOOMANYREFS}


class MessageKind(IntEnum):
    """The kinds of messages."""

    RING = 1
    """Writer: the ring, with its file descriptor."""
    VALUE = 2
    """Writer: value `number` is in the ring, with this length and checksum."""
    FILE = 3
    """Writer: value `number` is in a file of its own, with its file descriptor."""
    END = 4
    """Writer: there are no more."""
    READ = 5
    """Reader: `number` values have been read."""
    BYE = 6
    """Reader: no more will be read."""


class Message(NamedTuple):
    """One message. `length` in bytes."""

    kind: MessageKind
    number: int = 0
    length: int = 0
    checksum: int = 0


class Connection:
    """One side of a connection that carries messages with file descriptors, in order. One thread uses it.

    The kernel orders memory: the receiver of a message sees everything that was written before it was sent.
    """

    def __init__(self, sock: socket.socket) -> None:
        sock.setblocking(False)
        self._sock = sock

    def fileno(self) -> int:
        """File descriptor, readable when there is a message or the other side has gone."""
        return self._sock.fileno()

    def send(self, message: Message, fd: int | None = None) -> bool:
        """Sends a message. Returns False if the socket is full. Raises ConnectionError when the other side has gone."""
        data = _FORMAT.pack(message.kind, message.checksum, message.number, message.length)
        try:
            socket.send_fds(self._sock, [data], [] if fd is None else [fd])
        except OSError as error:
            if error.errno in _FULL:
                return False
            raise
        return True

    def receive(self) -> tuple[Message, int | None] | None:
        """The next message and its file descriptor. Returns None when there is no message now.

        Raises EOFError after the last message of the other side, ValueError for data that is no message.
        """
        try:
            data, fds = self._receive()
        except BlockingIOError:
            return None
        if not data:
            raise EOFError("the other end has gone")
        try:
            kind, checksum, number, length = _FORMAT.unpack(data)
            return Message(MessageKind(kind), number, length, checksum), fds[0] if fds else None
        except (struct.error, ValueError) as error:
            close_all(fds)
            raise ValueError(f"not a message: {error}") from error

    def wait(self, timeout: float) -> bool:
        """Waits at most `timeout` seconds for something to receive. Returns whether there is."""
        poll = select.poll()
        poll.register(self._sock, select.POLLIN)
        return bool(poll.poll(max(0.0, timeout) * 1000))

    def close(self) -> None:
        """Closes the connection. The other side can still receive what was sent."""
        self._sock.close()

    def _receive(self) -> tuple[bytes, list[int]]:
        try:
            return self._receive_once()
        except ConnectionError:
            # The other side has gone with unread data. Its last messages can still be received.
            return self._receive_once()

    def _receive_once(self) -> tuple[bytes, list[int]]:
        data, fds, _, _ = socket.recv_fds(self._sock, _FORMAT.size + 1, 1, socket.MSG_CMSG_CLOEXEC)
        return data, fds


class Listener:
    """Accepts the readers of a writer at a random abstract name, with a secret. Raises OSError."""

    def __init__(self) -> None:
        self._sock = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        try:
            self.address = f"rankbridge-{secrets.token_hex(16)}"
            self.secret = secrets.token_bytes(_SECRET_BYTES)
            self._sock.bind("\0" + self.address)
            self._sock.listen(_BACKLOG)
            self._sock.setblocking(False)
        except OSError:
            self.close()
            raise

    def admit(self, places: Collection[int]) -> dict[int, Connection]:
        """The connections of the readers `places` that have connected, by rank in group. Rejects all others."""
        connections: dict[int, Connection] = {}
        while True:
            try:
                sock, _ = self._sock.accept()
            except OSError:
                return connections
            place = self._place(sock)
            if place is None or place not in places or place in connections:
                sock.close()
            else:
                connections[place] = Connection(sock)

    def close(self) -> None:
        """Accepts no more connections."""
        self._sock.close()

    def _place(self, sock: socket.socket) -> int | None:
        sock.setblocking(False)
        try:
            hello = sock.recv(_HELLO.size + 1)
        except OSError:
            return None
        if len(hello) != _HELLO.size or not is_trusted(sock):
            return None
        secret, place = _HELLO.unpack(hello)
        return int(place) if secrets.compare_digest(secret, self.secret) else None


def connect(address: str, secret: bytes, place: int, timeout: float) -> Connection:
    """Connects to a writer's listener as the reader `place`, a rank in group. `timeout`: seconds. Raises OSError."""
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    try:
        sock.settimeout(timeout)
        sock.connect("\0" + address)
        if not is_trusted(sock):
            raise PermissionError("the listener belongs to another user")
        sock.send(_HELLO.pack(secret, place))
    except OSError:
        sock.close()
        raise
    return Connection(sock)
