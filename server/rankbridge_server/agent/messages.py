"""Messages between an agent and its ranks: one JSON object a line, over a socket pair."""

from __future__ import annotations

import json
import socket
import threading
from dataclasses import asdict, dataclass
from typing import get_args


@dataclass(frozen=True, slots=True)
class Ready:
    """A rank serves. `endpoints`: its gRPC targets, the one for this host first."""

    endpoints: list[str]


@dataclass(frozen=True, slots=True)
class Form:
    """To rank 0: form a generation of the ranks behind these targets, within `timeout` seconds."""

    endpoints: list[str]
    timeout: float


@dataclass(frozen=True, slots=True)
class Formed:
    """From rank 0: the generation is formed; it took `took` seconds."""

    generation: int
    took: float


@dataclass(frozen=True, slots=True)
class Began:
    """From a rank: it is in a new generation, whoever has formed it."""

    generation: int


@dataclass(frozen=True, slots=True)
class Suspect:
    """From a rank: it has lost another, and its generation is over. The lost rank may be stopped, not dead."""


@dataclass(frozen=True, slots=True)
class Ping:
    """To a rank: answer with Pong."""


@dataclass(frozen=True, slots=True)
class Pong:
    """From a rank: the answer to Ping."""


@dataclass(frozen=True, slots=True)
class Failed:
    """From a rank: it could not do what the agent asked."""

    error: str


Message = Ready | Form | Formed | Began | Suspect | Ping | Pong | Failed
_KINDS: dict[str, type[Message]] = {kind.__name__: kind for kind in get_args(Message)}


MAX_LINE = 1 << 20


class Line:
    """One end of the socket pair. Any thread may send; one receives. Who sends nonsense counts as gone."""

    def __init__(self, sock: socket.socket) -> None:
        self._socket = sock
        self._buffer = b""
        self._lock = threading.Lock()

    def fileno(self) -> int:
        """The socket's file descriptor."""
        return self._socket.fileno()

    def send(self, message: Message) -> None:
        """Send one message. Raises OSError when the other side is gone."""
        with self._lock:
            self._socket.sendall(_encoded(message))

    def try_send(self, message: Message) -> bool:
        """Send one message, unless the other side is gone or reads nothing."""
        line = _encoded(message)
        try:
            with self._lock:
                return self._socket.send(line, socket.MSG_DONTWAIT) == len(line)
        except OSError:
            return False

    def receive(self) -> Message | None:
        """The next message, when it comes; None when the other side is gone."""
        while b"\n" not in self._buffer:
            if not self._read():
                return None
        try:
            return self._take()
        except _Nonsense:
            return None

    def receive_all(self) -> list[Message] | None:
        """All messages that have come, of a line that is readable; None when the other side is gone."""
        if not self._read():
            return None
        messages: list[Message] = []
        try:
            while b"\n" in self._buffer:
                messages.append(self._take())
        except _Nonsense:
            return None
        return messages

    def _read(self) -> bool:
        try:
            data = self._socket.recv(65536)
        except ConnectionError:
            data = b""
        self._buffer += data
        return bool(data) and len(self._buffer) <= MAX_LINE

    def _take(self) -> Message:
        line, self._buffer = self._buffer.split(b"\n", 1)
        try:
            kind, fields = json.loads(line)
            return _KINDS[kind](**fields)
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            raise _Nonsense from error

    def close(self) -> None:
        """Close this end."""
        self._socket.close()


class _Nonsense(Exception):
    """A line is no message."""


def _encoded(message: Message) -> bytes:
    return json.dumps([type(message).__name__, asdict(message)]).encode() + b"\n"
