"""The setup of shared memory between a queue's writer and its readers on the same host."""

from __future__ import annotations

import json
import os
import secrets
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from .connection import Connection, Listener, Message, MessageKind, connect
from .memory import Ring, make_ring

Agree = Callable[[str, bytes], Sequence[bytes]]
"""Agrees with all members on a text, with a payload; returns all payloads, by rank in group."""

_YES = b"yes"


@dataclass(frozen=True, slots=True)
class Shape:
    """A queue that is being made, as this member (`me`) sees it.

    `near`: readers that say they are on the writer's host. `chunk_bytes`, `chunks`: of the ring. Ranks are ranks in the
    group.
    """

    name: str
    me: int
    writer: int
    near: tuple[int, ...]
    chunk_bytes: int
    chunks: int


class SharedMemorySetup:
    """Rounds in which all members take part. `close` releases what was not taken.

    A reader that cannot share memory with the writer, for whatever reason, gets values through the backend.
    """

    def __init__(self, shape: Shape) -> None:
        self._shape = shape
        self._listener: Listener | None = None
        self.channel = ""
        """The queue's globally unique name, equal on all members."""
        self.shared: tuple[int, ...] = ()
        """The readers that share memory with the writer."""
        self.connections: dict[int, Connection] = {}
        """At the writer, the connections to these readers; at one of them, the connection to the writer."""
        self.ring: Ring | None = None

    def meet(self, agree: Agree, timeout: float) -> None:
        """Runs the rounds. `timeout`: seconds for each step. Raises what `agree` raises."""
        shape = self._shape
        invitation = json.loads(agree(f"new_queue invite name={shape.name}", self._invite())[shape.writer])
        self.channel = invitation["channel"]
        if not invitation["address"]:
            return
        connected = agree(f"new_queue knock name={shape.name}", self._connect(invitation, timeout))
        if shape.me == shape.writer:
            self._admit([place for place in shape.near if connected[place] == _YES])
        else:
            self._enter(timeout)
        mine = (
            json.dumps(sorted(self.connections)).encode()
            if shape.me == shape.writer
            else _YES
            if self.ring
            else b""
        )
        opened = agree(f"new_queue opened name={shape.name}", mine)
        admitted = json.loads(opened[shape.writer])
        self.shared = tuple(place for place in shape.near if place in admitted and opened[place] == _YES)
        self._keep()

    def close(self) -> None:
        """Releases everything."""
        self._close_listener()
        for connection in self.connections.values():
            connection.close()
        self.connections = {}
        if self.ring is not None:
            self.ring.close()
            self.ring = None

    def take(self) -> None:
        """Passes connections and ring to the caller, who closes them."""
        self.connections, self.ring = {}, None

    def _invite(self) -> bytes:
        shape = self._shape
        if shape.me != shape.writer:
            return b""
        try:
            self._listener = Listener() if shape.near else None
        except OSError:
            self._listener = None
        return json.dumps(
            {
                "channel": f"{shape.name}/{secrets.token_hex(16)}",
                "address": self._listener.address if self._listener else "",
                "secret": self._listener.secret.hex() if self._listener else "",
            }
        ).encode()

    def _connect(self, invitation: dict[str, str], timeout: float) -> bytes:
        shape = self._shape
        if shape.me not in shape.near:
            return b""
        try:
            secret = bytes.fromhex(invitation["secret"])
            self.connections = {shape.writer: connect(invitation["address"], secret, shape.me, timeout)}
        except OSError:
            return b""
        return _YES

    def _admit(self, places: Sequence[int]) -> None:
        shape = self._shape
        if self._listener is None:
            return
        connections = self._listener.admit(places)
        self._close_listener()
        try:
            fd = make_ring(shape.chunk_bytes, shape.chunks)
        except OSError:
            _hang_up(connections)
            return
        try:
            self.ring = Ring(fd, shape.chunk_bytes, shape.chunks, writable=True)
            for place, connection in connections.items():
                if _send_ring(connection, fd):
                    self.connections[place] = connection
                else:
                    connection.close()
        except (OSError, ValueError):
            _hang_up(connections)
            self.connections = {}
        finally:
            os.close(fd)

    def _enter(self, timeout: float) -> None:
        shape = self._shape
        for connection in self.connections.values():
            try:
                came = connection.receive() if connection.wait(timeout) else None
                if came is None or came[1] is None:
                    return
                try:
                    self.ring = Ring(came[1], shape.chunk_bytes, shape.chunks, writable=False)
                finally:
                    os.close(came[1])
            except (OSError, EOFError, ValueError):
                return

    def _keep(self) -> None:
        """Closes the connections of readers that do not share memory after all."""
        shape = self._shape
        mine = shape.me == shape.writer
        for place in [at for at in self.connections if (at if mine else shape.me) not in self.shared]:
            self.connections.pop(place).close()
        if self.ring is not None and not self.connections:
            self.ring.close()
            self.ring = None

    def _close_listener(self) -> None:
        if self._listener is not None:
            self._listener.close()
            self._listener = None


def _send_ring(connection: Connection, fd: int) -> bool:
    try:
        return connection.send(Message(MessageKind.RING), fd)
    except ConnectionError:
        return False


def _hang_up(connections: dict[int, Connection]) -> None:
    for connection in connections.values():
        connection.close()
