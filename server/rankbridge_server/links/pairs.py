"""Links between ranks of one process, over socket pairs."""

from __future__ import annotations

import math
import os
import socket
import threading
from collections import deque

from ..core.links import Links
from .heartbeat import Heartbeat
from .sockets import SocketLinks

# Ranks of one process are lost together: no rank waits for another's heartbeats.
_NO_BEATS = Heartbeat(interval=math.inf)


class PairLinkMaker:
    """Makes the links of all ranks of this process. No other process can connect to them.

    `patience`: seconds that an admission may take before its stragglers are named.
    """

    def __init__(self, patience: float = math.inf) -> None:
        self._patience = patience
        self._lock = threading.Lock()
        self._listeners: dict[str, PairListener] = {}

    def __call__(self, generation: int, rank: int) -> Links:
        """Links of one rank in one generation."""
        listener = PairListener(self, f"local:{generation}/{rank}")
        with self._lock:
            self._listeners[listener.address] = listener
        return SocketLinks(generation, rank, listener, _NO_BEATS, self._patience)

    def dial(self, address: str) -> socket.socket:
        """Connects to one of this process's listeners. Raises ConnectionError when there is none."""
        with self._lock:
            listener = self._listeners.get(address)
            if listener is None:
                raise ConnectionError(f"nobody listens at {address}")
            mine, theirs = socket.socketpair()
            listener.call(theirs)
        return mine

    def forget(self, listener: PairListener) -> None:
        """Removes a listener, so that it can no longer be dialled."""
        with self._lock:
            if self._listeners.get(listener.address) is listener:
                del self._listeners[listener.address]


class PairListener:
    """A listener whose connections are socket pairs."""

    def __init__(self, maker: PairLinkMaker, address: str) -> None:
        self.address = address
        self._maker = maker
        # Counts the connections in `_calls`.
        self._bell = os.eventfd(0, os.EFD_SEMAPHORE | os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        self._calls: deque[socket.socket] = deque()

    def fileno(self) -> int:
        """The event file descriptor that counts waiting connections."""
        return self._bell

    def call(self, sock: socket.socket) -> None:
        """Adds a connection whose other end a dialling rank holds."""
        self._calls.append(sock)
        os.eventfd_write(self._bell, 1)

    def accept(self) -> socket.socket:
        """The oldest connection that waits."""
        os.eventfd_read(self._bell)
        return self._calls.popleft()

    def dial(self, address: str, timeout: float) -> socket.socket:
        """Connects to another listener. Never waits."""
        return self._maker.dial(address)

    def close(self) -> None:
        """Closes the listener and the connections that were not accepted."""
        self._maker.forget(self)
        for sock in self._calls:
            sock.close()
        os.close(self._bell)
