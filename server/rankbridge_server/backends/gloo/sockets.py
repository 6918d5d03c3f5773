"""The TCP sockets of this process, among which are Gloo's, and the connections of one group."""

from __future__ import annotations

import os
import socket
import stat
from collections.abc import Collection, Iterable, Iterator
from contextlib import suppress
from itertools import islice

Endpoint = tuple[str, int]
"""Numeric host, and port."""


def tcp_sockets(fds: Iterable[int] | None = None) -> Iterator[tuple[int, socket.socket]]:
    """Gives each with its descriptor, the youngest first, as a duplicate that is open until the next is asked for.

    Args:
        fds: Descriptors that may be sockets. None: all.
    """
    if fds is None:
        fds = sorted(map(int, os.listdir("/proc/self/fd")), reverse=True)
    for fd in fds:
        # Gloo may close one at any time.
        with suppress(OSError):
            if not stat.S_ISSOCK(os.fstat(fd).st_mode):
                continue
            with socket.socket(fileno=os.dup(fd)) as found:
                if found.family in (socket.AF_INET, socket.AF_INET6):
                    yield fd, found


def is_listener(found: socket.socket) -> bool:
    """Says whether a socket waits for others to connect."""
    return bool(found.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN))


def is_connection(found: socket.socket, own: Collection[Endpoint], peers: Collection[Endpoint]) -> bool:
    """Says whether a socket is a connection at one of `own` endpoints, or to one of `peers`. Raises OSError."""
    # Gloo ends the process when it cannot accept.
    return not is_listener(found) and (found.getsockname()[:2] in own or found.getpeername()[:2] in peers)


class GroupConnections:
    """The connections of one member of a group to the others, which Gloo has just made."""

    def __init__(self, own: Endpoint, peers: Collection[Endpoint]) -> None:
        """Finds them. `own`, `peers`: where this member listened, and the others."""
        self._own, self._peers = [own], peers
        self._fds = [fd for fd, _ in islice(self._those(None), len(peers))]

    def hang_up(self) -> None:
        """Ends them, after what was sent. Only for a group in which this member does nothing any more.

        Gloo ends a connection that is over at once. For each other one it waits until its thread wakes, up to 10 ms.
        """
        for _, connection in self._those(self._fds):
            with suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)

    def _those(self, fds: Iterable[int] | None) -> Iterator[tuple[int, socket.socket]]:
        for fd, found in tcp_sockets(fds):
            # A descriptor may be another's by now.
            with suppress(OSError):
                if is_connection(found, self._own, self._peers):
                    yield fd, found
