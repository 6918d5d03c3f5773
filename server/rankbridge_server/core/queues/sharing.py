"""The setup of shared memory between a queue's writer and its readers on the same host."""

from __future__ import annotations

import json
import os
import secrets
from collections.abc import Callable, Sequence

from .connection import Connection, Listener, Message, MessageKind, connect
from .memory import Ring, make_ring
from .view import QueueView

Agree = Callable[[str, bytes], Sequence[bytes]]
"""Agrees with all members on a text, with a payload; returns all payloads, by rank in group."""

_YES = b"yes"


class SharedMemorySetup:
    """Rounds in which all members take part. `close` releases what was not taken.

    A reader that cannot share memory with the writer, for whatever reason, gets values through the backend.
    `me`: this member's rank in the group. `near`: readers that say they are on the writer's host.
    """

    def __init__(self, view: QueueView, me: int, near: Sequence[int]) -> None:
        self._view = view
        self._me = me
        self._near = near
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
        view = self._view
        invitation = json.loads(
            agree(f"new_queue invite name={view.name}", self._invite())[self._view.writer]
        )
        self.channel = invitation["channel"]
        if not invitation["address"]:
            return
        connected = agree(f"new_queue knock name={view.name}", self._connect(invitation, timeout))
        if self._me == self._view.writer:
            self._admit([place for place in self._near if connected[place] == _YES])
        else:
            self._enter(timeout)
        mine = (
            json.dumps(sorted(self.connections)).encode()
            if self._me == self._view.writer
            else _YES
            if self.ring
            else b""
        )
        opened = agree(f"new_queue opened name={view.name}", mine)
        admitted = json.loads(opened[view.writer])
        self.shared = tuple(place for place in self._near if place in admitted and opened[place] == _YES)
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
        view = self._view
        if self._me != view.writer:
            return b""
        try:
            self._listener = Listener() if self._near else None
        except OSError:
            self._listener = None
        return json.dumps(
            {
                "channel": f"{view.name}/{secrets.token_hex(16)}",
                "address": self._listener.address if self._listener else "",
                "secret": self._listener.secret.hex() if self._listener else "",
            }
        ).encode()

    def _connect(self, invitation: dict[str, str], timeout: float) -> bytes:
        if self._me not in self._near:
            return b""
        try:
            secret = bytes.fromhex(invitation["secret"])
            self.connections = {self._view.writer: connect(invitation["address"], secret, self._me, timeout)}
        except OSError:
            return b""
        return _YES

    def _admit(self, places: Sequence[int]) -> None:
        view = self._view
        if self._listener is None:
            return
        connections = self._listener.admit(places)
        self._close_listener()
        try:
            fd = make_ring(view.max_chunk_bytes, view.max_chunks)
        except OSError:
            _hang_up(connections)
            return
        try:
            self.ring = Ring(fd, view.max_chunk_bytes, view.max_chunks, writable=True)
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
        view = self._view
        for connection in self.connections.values():
            try:
                came = connection.receive() if connection.wait(timeout) else None
                if came is None or came[1] is None:
                    return
                try:
                    self.ring = Ring(came[1], view.max_chunk_bytes, view.max_chunks, writable=False)
                finally:
                    os.close(came[1])
            except (OSError, EOFError, ValueError):
                return

    def _keep(self) -> None:
        """Closes the connections of readers that do not share memory after all."""
        view = self._view
        mine = self._me == view.writer
        for place in [at for at in self.connections if (at if mine else self._me) not in self.shared]:
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
