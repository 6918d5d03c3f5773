"""What an agent and its ranks say to each other: one JSON object a line, over a socket pair."""

from __future__ import annotations

import json
import socket
from dataclasses import asdict, dataclass, field


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
class Failed:
    """From a rank: it could not do what it was told."""

    error: str


@dataclass(frozen=True, slots=True)
class Stop:
    """To a rank: end."""

    reason: str = field(default="")


Message = Ready | Form | Formed | Failed | Stop
_KINDS: dict[str, type[Message]] = {kind.__name__: kind for kind in (Ready, Form, Formed, Failed, Stop)}


class Line:
    """One end of the socket pair."""

    def __init__(self, sock: socket.socket) -> None:
        self._socket = sock
        self._buffer = b""

    def fileno(self) -> int:
        """For selectors."""
        return self._socket.fileno()

    def send(self, message: Message) -> None:
        """Send one message. Raises OSError when the other side is gone."""
        self._socket.sendall(json.dumps([type(message).__name__, asdict(message)]).encode() + b"\n")

    def receive(self) -> Message | None:
        """The next message; None when the other side is gone."""
        while b"\n" not in self._buffer:
            try:
                data = self._socket.recv(65536)
            except ConnectionError:
                data = b""
            if not data:
                return None
            self._buffer += data
        line, self._buffer = self._buffer.split(b"\n", 1)
        kind, fields = json.loads(line)
        return _KINDS[kind](**fields)

    def close(self) -> None:
        """Close this end."""
        self._socket.close()
