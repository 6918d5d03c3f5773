"""The connections of Gloo groups that torch itself makes, found by the addresses that it puts into their store."""

from __future__ import annotations

import os
import socket
import stat
import threading
from contextlib import suppress

from . import listener
from .address import endpoint_of


class Connections:
    """Those of all groups of one store. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._own: set[tuple[str, int]] = set()
        self._peers: set[tuple[str, int]] = set()

    def seen(self, value: bytes, is_own: bool) -> None:
        """Looks at a value of the store. `is_own`: this process has put it there."""
        endpoint = endpoint_of(value, _size_of(value)) if _size_of(value) else None
        if endpoint is None:
            return
        with self._lock:
            (self._own if is_own else self._peers).add(endpoint)

    def close_listeners(self) -> None:
        """Lets nobody else connect: to be called when all groups are connected."""
        with self._lock:
            own = list(self._own)
        for _, port in own:
            listener.shut(port)

    def shut(self) -> None:
        """Shuts every connection, so that what waits for it fails at once, here and at the other end."""
        with self._lock:
            own, peers = set(self._own), set(self._peers)
        for fd in os.listdir("/proc/self/fd"):
            with suppress(OSError):
                if stat.S_ISSOCK(os.fstat(int(fd)).st_mode):
                    _shut(int(fd), own, peers)


def _shut(fd: int, own: set[tuple[str, int]], peers: set[tuple[str, int]]) -> None:
    with socket.socket(fileno=os.dup(fd)) as connection:
        if connection.family not in (socket.AF_INET, socket.AF_INET6):
            return
        if connection.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN):
            # Gloo ends the process when it cannot accept.
            return
        if connection.getsockname()[:2] in own or connection.getpeername()[:2] in peers:
            connection.shutdown(socket.SHUT_RDWR)


def _size_of(value: bytes) -> int:
    """The number of members for which this may be an address of Gloo; 0: it is none."""
    if len(value) < 8:
        return 0
    host = int.from_bytes(value[:8], "little")
    rest = len(value) - 16 - host - 136
    return rest // 8 if rest > 0 and not rest % 8 else 0
