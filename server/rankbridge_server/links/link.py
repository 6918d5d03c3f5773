"""One control link: a connected stream socket."""

from __future__ import annotations

import contextlib
import socket
import struct
import threading
import time

from .wire import Frames

# A peer that reads nothing for this long is as good as dead.
SEND_TIMEOUT_S = 5


class Link:
    """A socket to one sidecar. Any thread may send; one thread receives."""

    def __init__(self, sock: socket.socket) -> None:
        self.socket = sock
        self.frames = Frames()
        self.rank: int | None = None
        self.heard = time.monotonic()
        self._lock = threading.Lock()
        if sock.family != socket.AF_UNIX:
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        # Receiving is done when the selector says so; only sending may wait, and not for ever.
        sock.setblocking(True)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, struct.pack("ll", SEND_TIMEOUT_S, 0))

    def send(self, data: bytes) -> None:
        """Send one packed frame. Raises OSError when the link is broken."""
        with self._lock:
            self.socket.sendall(data)

    def receive(self) -> bytes:
        """What has come; empty at the end. Raises OSError."""
        data = self.socket.recv(65536)
        self.heard = time.monotonic()
        return data

    def close(self) -> None:
        """Close at once."""
        # Not connected any more is fine: closing is all that is left.
        with contextlib.suppress(OSError):
            self.socket.shutdown(socket.SHUT_RDWR)
        self.socket.close()


def listen(address: str) -> tuple[socket.socket, str]:
    """Listen on "unix:/path", or on "host:port" with port 0 for any; returns the socket and its address."""
    if address.startswith("unix:"):
        sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        sock.bind(address.removeprefix("unix:"))
        sock.listen(1024)
        return sock, address
    host, _, port = address.rpartition(":")
    sock = socket.create_server((host.strip("[]"), int(port)), backlog=1024)
    return sock, f"{host}:{sock.getsockname()[1]}"


def dial(address: str, timeout: float) -> socket.socket:
    """Connect to an address from `listen`, in `timeout` seconds. Raises OSError."""
    if address.startswith("unix:"):
        sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        sock.settimeout(timeout)
        sock.connect(address.removeprefix("unix:"))
        return sock
    host, _, port = address.rpartition(":")
    return socket.create_connection((host.strip("[]"), int(port)), timeout)
