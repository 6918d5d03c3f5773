"""The socket at which Gloo waits for the other members of a group."""

from __future__ import annotations

import ctypes
import os
import socket
import stat
import struct
from contextlib import suppress

_SO_ATTACH_FILTER = 26
_DROP_ALL = struct.pack("=HBBI", 0x06, 0, 0, 0)  # BPF: return 0 bytes of the packet.


def shut(port: int) -> bool:
    """Lets nobody else connect to the TCP port on which this process listens; connections that are there stay.

    Gloo never closes its listener, and each connection of a stranger costs it a file descriptor. Returns False if this
    process does not listen there.
    """
    # The youngest first: a listener that was just made is found at once.
    for fd in sorted(map(int, os.listdir("/proc/self/fd")), reverse=True):
        with suppress(OSError):
            if stat.S_ISSOCK(os.fstat(fd).st_mode) and _shut(fd, port):
                return True
    return False


def _shut(fd: int, port: int) -> bool:
    with socket.socket(fileno=os.dup(fd)) as listener:
        if listener.family not in (socket.AF_INET, socket.AF_INET6) or listener.getsockname()[1] != port:
            return False
        if not listener.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN):
            return False
        program = ctypes.create_string_buffer(_DROP_ALL, len(_DROP_ALL))
        # struct sock_fprog: how many instructions, and where they are.
        described = struct.pack("@HP", 1, ctypes.addressof(program))
        listener.setsockopt(socket.SOL_SOCKET, _SO_ATTACH_FILTER, described)
        return True
