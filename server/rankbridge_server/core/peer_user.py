"""The user at the other end of a unix socket, as the kernel knows it."""

from __future__ import annotations

import os
import socket
import struct

_PEER = struct.Struct("=iII")


def is_trusted(sock: socket.socket) -> bool:
    """Whether the process that connected, or listened, had this process's user, or root.

    Sockets of other families have no such user; their callers show tokens or secrets.
    """
    if sock.family != socket.AF_UNIX:
        return True
    return peer_of(sock)[1] in (0, os.geteuid())


def peer_of(sock: socket.socket) -> tuple[int, int]:
    """The process at the other end of a unix socket, and its user."""
    pid, uid, _ = _PEER.unpack(sock.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _PEER.size))
    return pid, uid
