"""The connections of Gloo groups that torch itself makes, found by the addresses that it puts into their store."""

from __future__ import annotations

import fcntl
import os
import select
import socket
import struct
import termios
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from .address import endpoint_of
from .sockets import Endpoint, close_to_others, is_connection, is_listener, tcp_sockets

_LOOK_S = 0.01
_QUIET_MS = 50
"""So long nothing has come or gone: the next step of a collective, or the rest of a message, may be about to."""
_MOST_S = 1.0
_PAUSE_S = 0.3
_COUNT = struct.Struct("i")
_LAST_DATA = struct.Struct("=44xI4xI")
"""Of struct tcp_info: how long ago data was sent, and came, in ms."""
_SEQUENCE = struct.Struct("=q")
_CONNECT_S = 0.1


class Connections:
    """Those of all groups of one store. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._own: set[Endpoint] = set()
        self._peers: set[Endpoint] = set()
        # Own listeners that still wait for other members, and how many members their groups have.
        self._listening: dict[Endpoint, int] = {}

    def seen(self, value: bytes, is_own: bool) -> None:
        """Looks at a value of the store. `is_own`: this process has put it there."""
        size = _size_of(value)
        endpoint = endpoint_of(value, size) if size else None
        if endpoint is None:
            return
        with self._lock:
            (self._own if is_own else self._peers).add(endpoint)
            if is_own:
                self._listening[endpoint] = size

    def close_listeners(self) -> None:
        """Lets nobody else connect: to be called when all groups are connected."""
        with self._lock:
            own, self._listening = set(self._own), {}
        for _, found in tcp_sockets():
            with suppress(OSError):
                if found.getsockname()[:2] in own and is_listener(found):
                    close_to_others(found)

    def stop(self, is_over: threading.Event) -> None:
        """Lets everything that waits in Gloo fail, until `is_over`: also what only then begins to wait."""
        self.shut()
        pause = _LOOK_S
        while not is_over.wait(pause):
            self._stand_in()
            self._shut_all()
            pause = min(2 * pause, _PAUSE_S)

    def shut(self) -> None:
        """Shuts every connection, so that what waits for it fails, here and at the other end. Takes 1 s at most.

        First it waits until nothing is on its way: of a message that is cut off halfway, Gloo tells the sender nothing.
        """
        until = time.monotonic() + _MOST_S
        while time.monotonic() < until and self._is_busy():
            time.sleep(_LOOK_S)
        self._shut_all()

    def _is_busy(self) -> bool:
        unfinished = _unfinished_writes()
        return any(fd in unfinished or _has_data(connection) for fd, connection in self._all())

    def _shut_all(self) -> None:
        for _, connection in self._all():
            with suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)

    def _stand_in(self) -> None:
        """Connects to own listeners in the place of each other member, and hangs up.

        Nothing else ends the wait for a member that does not come: it has died, or has given up.
        """
        with self._lock:
            listening, self._listening = self._listening, {}
        for endpoint, size in listening.items():
            for pair in range(size):
                with suppress(OSError), socket.create_connection(endpoint, _CONNECT_S) as connection:
                    # What a member says first: which pair of sockets it is the other end of.
                    connection.sendall(_SEQUENCE.pack(pair))

    def _all(self) -> Iterator[tuple[int, socket.socket]]:
        """The connections that are there, each with its descriptor, as `tcp_sockets` gives them."""
        with self._lock:
            own, peers = set(self._own), set(self._peers)
        for fd, found in tcp_sockets():
            with suppress(OSError):
                if is_connection(found, own, peers):
                    yield fd, found


def _has_data(connection: socket.socket) -> bool:
    """Whether something that was sent has not reached the other end, or something was sent or has come just now."""
    try:
        unsent = _COUNT.unpack(fcntl.ioctl(connection, termios.TIOCOUTQ, bytes(_COUNT.size)))[0]
        info = connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, _LAST_DATA.size)
        return bool(unsent) or min(_LAST_DATA.unpack(info)) < _QUIET_MS
    except (OSError, struct.error):
        return False


def _unfinished_writes() -> set[int]:
    """The descriptors on which Gloo's loop waits until it can write: it has written a part of a message."""
    found = set()
    for fd in os.listdir("/proc/self/fd"):
        with suppress(OSError):
            if os.readlink(f"/proc/self/fd/{fd}") != "anon_inode:[eventpoll]":
                continue
            for line in Path(f"/proc/self/fdinfo/{fd}").read_text().splitlines():
                # "tfd: 25 events: 2019 data: ...", the events in hexadecimal.
                if line.startswith("tfd:") and int((words := line.split())[3], 16) & select.EPOLLOUT:
                    found.add(int(words[1]))
    return found


def _size_of(value: bytes) -> int:
    """The number of members for which this may be an address of Gloo; 0: it is none."""
    if len(value) < 8:
        return 0
    host = int.from_bytes(value[:8], "little")
    rest = len(value) - 16 - host - 136
    return rest // 8 if rest > 0 and not rest % 8 else 0
