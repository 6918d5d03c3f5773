"""Closing a control link from outside.

The kernel gives whoever may trace a process a duplicate of one of its sockets (pidfd_getfd(2)); shutting that down
shuts the link for both ends, as a broken network does. The ranks have no part in it.
"""

from __future__ import annotations

import ctypes
import os
import platform
import re
import socket
from collections.abc import Iterator
from contextlib import closing, contextmanager

# The same number on every architecture.
_PIDFD_GETFD = 438
_LINK = re.compile(r"/links-(\d+)\.\d+$")


class NotPermittedError(Exception):
    """This kernel, or this user's rights, do not allow it."""


def close_link(pid: int, leader: int) -> None:
    """Close the control link of process `pid` to the sidecar of rank `leader`.

    Raises:
        NotPermittedError: It cannot be done here.
        LookupError: The process has no such link.
    """
    with _pidfd(pid) as pidfd:
        for name in os.listdir(f"/proc/{pid}/fd"):
            it = _unix_socket(pidfd, pid, int(name))
            if it is not None:
                with closing(it):
                    if _leader(it) == leader:
                        it.shutdown(socket.SHUT_RDWR)
                        return
    raise LookupError(f"process {pid} has no control link to rank {leader}")


@contextmanager
def _pidfd(pid: int) -> Iterator[int]:
    fd = os.pidfd_open(pid)
    try:
        yield fd
    finally:
        os.close(fd)


def _unix_socket(pidfd: int, pid: int, fd: int) -> socket.socket | None:
    try:
        if not os.readlink(f"/proc/{pid}/fd/{fd}").startswith("socket:"):
            return None
    except FileNotFoundError:
        return None
    libc = ctypes.CDLL(None, use_errno=True)
    duplicate = libc.syscall(_PIDFD_GETFD, pidfd, fd, 0)
    if duplicate < 0:
        error = OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
        if isinstance(error, FileNotFoundError) or error.errno == 9:
            return None
        raise NotPermittedError(f"pidfd_getfd on Linux {platform.release()}: {error}")
    it = socket.socket(fileno=duplicate)
    if it.family is socket.AF_UNIX:
        return it
    it.close()
    return None


def _leader(it: socket.socket) -> int | None:
    try:
        peer = it.getpeername()
    except OSError:
        # It listens.
        return None
    found = _LINK.search(peer) if isinstance(peer, str) else None
    return int(found[1]) if found else None
