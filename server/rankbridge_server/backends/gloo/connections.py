"""The connections of Gloo groups that torch itself makes, found by the addresses that it puts into their store."""

from __future__ import annotations

import fcntl
import os
import socket
import stat
import struct
import termios
import threading
import time
from collections.abc import Iterator
from contextlib import suppress

from . import listener
from .address import endpoint_of

_LOOK_S = 0.01
_LOOKS = 2
"""So often in a row nothing is being sent: the next step of a collective may begin between two looks."""
_MOST_S = 0.3
_COUNT = struct.Struct("i")


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
        """Shuts every connection, so that what waits for it fails, here and at the other end. Takes 0.3 s at most.

        First it waits until nothing is being sent: of a message that is cut off halfway, Gloo tells the sender nothing.
        """
        until = time.monotonic() + _MOST_S
        quiet = 0
        while quiet < _LOOKS and time.monotonic() < until:
            time.sleep(_LOOK_S)
            quiet = 0 if any(map(_is_sending, self._all())) else quiet + 1
        for connection in self._all():
            with suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)

    def _all(self) -> Iterator[socket.socket]:
        """The connections that are there, each as a duplicate that is open until the next is asked for."""
        with self._lock:
            own, peers = set(self._own), set(self._peers)
        for fd in os.listdir("/proc/self/fd"):
            with suppress(OSError):
                if not stat.S_ISSOCK(os.fstat(int(fd)).st_mode):
                    continue
                with socket.socket(fileno=os.dup(int(fd))) as found:
                    if _is_one(found, own, peers):
                        yield found


def _is_one(found: socket.socket, own: set[tuple[str, int]], peers: set[tuple[str, int]]) -> bool:
    if found.family not in (socket.AF_INET, socket.AF_INET6):
        return False
    if found.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN):
        # Gloo ends the process when it cannot accept.
        return False
    return found.getsockname()[:2] in own or found.getpeername()[:2] in peers


def _is_sending(connection: socket.socket) -> bool:
    """Whether something that was sent has not reached the other end."""
    try:
        return bool(_COUNT.unpack(fcntl.ioctl(connection, termios.TIOCOUTQ, bytes(_COUNT.size)))[0])
    except OSError:
        return False


def _size_of(value: bytes) -> int:
    """The number of members for which this may be an address of Gloo; 0: it is none."""
    if len(value) < 8:
        return 0
    host = int.from_bytes(value[:8], "little")
    rest = len(value) - 16 - host - 136
    return rest // 8 if rest > 0 and not rest % 8 else 0
