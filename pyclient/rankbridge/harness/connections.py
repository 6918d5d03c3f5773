"""Closing connections between ranks from outside.

The kernel gives whoever may trace a process a duplicate of one of its sockets (pidfd_getfd(2)); shutting that down
shuts the connection for both ends, as a broken network does. The ranks have no part in it.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import platform
import re
import socket
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

# The same number on every architecture.
_PIDFD_GETFD = 438
_LINK = re.compile(r"/links-(\d+)\.\d+$")
_ESTABLISHED = "01"


class NotPermittedError(Exception):
    """This kernel, or this user's rights, do not allow it."""


def close_link(pid: int, leader: int) -> None:
    """Closes the control links of process `pid` to the sidecar of rank `leader`.

    Raises:
        NotPermittedError: It cannot be done here.
        LookupError: The process has no such link.
    """
    if not _shut(pid, lambda it, _: it.family is socket.AF_UNIX and _leader(it) == leader):
        raise LookupError(f"process {pid} has no control link to rank {leader}")


def close_between(pid: int, other: int) -> int:
    """Closes the TCP connections between two processes of this host: those of the backend, for the data.

    Returns:
        How many there were.

    Raises:
        NotPermittedError: It cannot be done here.
    """
    own, others = _ends(pid), {there: here for here, there in _ends(other).values()}
    inodes = {inode for inode, (here, there) in own.items() if others.get(here) == there}
    return _shut(pid, lambda it, inode: inode in inodes)


def _ends(pid: int) -> dict[str, tuple[str, str]]:
    """Gives local and remote address of each TCP connection of a process, by its socket's inode."""
    inodes = set(_sockets(pid).values())
    found = {}
    for table in ("tcp", "tcp6"):
        for line in Path(f"/proc/{pid}/net/{table}").read_text().splitlines()[1:]:
            here, there, state, inode = (line.split()[it] for it in (1, 2, 3, 9))
            if state == _ESTABLISHED and inode in inodes:
                found[inode] = here, there
    return found


def _sockets(pid: int) -> dict[int, str]:
    """Gives the inode of each socket of a process, by its descriptor."""
    found = {}
    for name in os.listdir(f"/proc/{pid}/fd"):
        with contextlib.suppress(FileNotFoundError):
            target = os.readlink(f"/proc/{pid}/fd/{name}")
            if target.startswith("socket:["):
                found[int(name)] = target[8:-1]
    return found


def _shut(pid: int, chosen: Callable[[socket.socket, str], bool]) -> int:
    """Shuts chosen sockets of a process; gives how many."""
    count = 0
    with _pidfd(pid) as pidfd:
        for fd, inode in _sockets(pid).items():
            it = _duplicate(pidfd, fd)
            if it is not None:
                with closing(it):
                    if chosen(it, inode):
                        it.shutdown(socket.SHUT_RDWR)
                        count += 1
    return count


@contextmanager
def _pidfd(pid: int) -> Iterator[int]:
    fd = os.pidfd_open(pid)
    try:
        yield fd
    finally:
        os.close(fd)


def _duplicate(pidfd: int, fd: int) -> socket.socket | None:
    libc = ctypes.CDLL(None, use_errno=True)
    duplicate = libc.syscall(_PIDFD_GETFD, pidfd, fd, 0)
    if duplicate >= 0:
        return socket.socket(fileno=duplicate)
    error = OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    if isinstance(error, FileNotFoundError) or error.errno == 9:
        return None
    raise NotPermittedError(f"pidfd_getfd on Linux {platform.release()}: {error}")


def _leader(it: socket.socket) -> int | None:
    try:
        peer = it.getpeername()
    except OSError:
        # It listens.
        return None
    found = _LINK.search(peer) if isinstance(peer, str) else None
    return int(found[1]) if found else None
