"""The socket at which Gloo waits for the other members of a group."""

from __future__ import annotations

import ctypes
import socket
import struct
from contextlib import suppress

from .sockets import is_listener, tcp_sockets

_SO_ATTACH_FILTER = 26
_DROP_ALL = struct.pack("=HBBI", 0x06, 0, 0, 0)  # BPF: return 0 bytes of the packet.


def shut(port: int) -> bool:
    """Lets nobody else connect to the TCP port on which this process listens; connections that are there stay.

    Gloo never closes its listener, and each connection of a stranger costs it a file descriptor. Returns False if this
    process does not listen there.
    """
    # The youngest come first: a listener that was just made is found at once.
    for _, found in tcp_sockets():
        # A confined process may not attach filters.
        with suppress(OSError):
            if _shut(found, port):
                return True
    return False


def _shut(found: socket.socket, port: int) -> bool:
    if found.getsockname()[1] != port or not is_listener(found):
        return False
    program = ctypes.create_string_buffer(_DROP_ALL, len(_DROP_ALL))
    # struct sock_fprog: how many instructions, and where they are.
    described = struct.pack("@HP", 1, ctypes.addressof(program))
    found.setsockopt(socket.SOL_SOCKET, _SO_ATTACH_FILTER, described)
    return True
