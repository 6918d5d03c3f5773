"""The TCP sockets of this process, among which are Gloo's: those of one group, and who may connect to them."""

from __future__ import annotations

import ctypes
import os
import socket
import stat
import struct
from collections.abc import Collection, Iterable, Iterator
from contextlib import suppress

_SO_ATTACH_FILTER = 26
_DROP_ALL = struct.pack("=HBBI", 0x06, 0, 0, 0)  # BPF: return 0 bytes of the packet.

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


def close_to_others(listener: socket.socket) -> None:
    """Lets nobody else connect; connections that are there stay. Raises OSError: a confined process may not do it.

    Gloo never closes its listener, and each connection of a stranger costs it a file descriptor.
    """
    program = ctypes.create_string_buffer(_DROP_ALL, len(_DROP_ALL))
    # struct sock_fprog: how many instructions, and where they are.
    described = struct.pack("@HP", 1, ctypes.addressof(program))
    listener.setsockopt(socket.SOL_SOCKET, _SO_ATTACH_FILTER, described)


class GroupSockets:
    """What one member of a group has once Gloo has connected it: a listener, and a connection to each other member."""

    def __init__(self, own: Endpoint, peers: Collection[Endpoint]) -> None:
        """Finds them. `own`, `peers`: where this member listens, and the others."""
        self._own, self._peers = own, peers
        self._fds: list[int] = []
        has_listener = False
        for fd, found in self._those(None):
            self._fds.append(fd)
            has_listener = has_listener or is_listener(found)
            # Strangers may have connected, too.
            if has_listener and len(self._fds) > len(peers):
                break

    def close_listener(self) -> None:
        """Lets nobody else connect, where this process may do that."""
        for _, found in self._those(self._fds):
            with suppress(OSError):
                if is_listener(found):
                    close_to_others(found)

    def hang_up(self) -> None:
        """Ends the connections, after what was sent. Only for a group in which this member does nothing any more.

        Gloo ends a connection that is over at once. For each other one it waits until its thread wakes, up to 10 ms.
        """
        for _, found in self._those(self._fds):
            with suppress(OSError):
                if not is_listener(found):
                    found.shutdown(socket.SHUT_RDWR)

    def _those(self, fds: Iterable[int] | None) -> Iterator[tuple[int, socket.socket]]:
        for fd, found in tcp_sockets(fds):
            # A descriptor may be another's by now.
            with suppress(OSError):
                if found.getsockname()[:2] == self._own or found.getpeername()[:2] in self._peers:
                    yield fd, found
