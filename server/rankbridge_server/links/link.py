"""One control link: a connected stream socket, for one group."""

from __future__ import annotations

import contextlib
import socket
import struct
import threading
import time
from collections.abc import Iterator

from rankbridge.link.v1 import link_pb2 as pb

from . import wire
from .wire import Frames

# A peer that reads nothing for this long is as good as dead.
SEND_TIMEOUT_S = 5


class Link:
    """A socket to one sidecar. Any thread may send; one at a time receives.

    `rank` and `group` are known once it has said hello. `leaving`: it said goodbye, and its end is no loss.
    """

    def __init__(self, sock: socket.socket) -> None:
        self.socket = sock
        self.rank: int | None = None
        self.group = ""
        self.leaving = False
        self.heard = time.monotonic()
        self._frames = Frames()
        self._lock = threading.Lock()
        if sock.family != socket.AF_UNIX:
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        # Receiving never waits; sending may, but not for ever.
        sock.setblocking(True)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, struct.pack("ll", SEND_TIMEOUT_S, 0))

    def fileno(self) -> int:
        """For selectors."""
        return self.socket.fileno()

    def send(self, data: bytes) -> None:
        """Send one packed frame. Raises OSError when the link is broken."""
        with self._lock:
            self.socket.sendall(data)

    def receive(self) -> Iterator[pb.Frame]:
        """The frames that have come, if any. Raises ConnectionError at the end, ValueError for what is no frame."""
        try:
            data = self.socket.recv(65536, socket.MSG_DONTWAIT)
        except BlockingIOError:
            # Another thread was quicker.
            return iter(())
        if not data:
            raise ConnectionError("its link was closed")
        self.heard = time.monotonic()
        return self._frames.feed(data)

    def shut(self) -> None:
        """End it in both directions, so that whoever waits for it wakes up."""
        # Not connected any more is fine.
        with contextlib.suppress(OSError):
            self.socket.shutdown(socket.SHUT_RDWR)

    def part(self) -> None:
        """Say goodbye, and nothing after it. The other side may still speak: see `close`."""
        with contextlib.suppress(OSError):
            self.send(wire.GOODBYE)
            self.socket.shutdown(socket.SHUT_WR)

    def close(self) -> None:
        """Give the socket back. Nobody may be using it.

        A socket that is closed with something unread takes back what it has sent: after `shut` nothing more comes, and
        what has come is read.
        """
        self.shut()
        with contextlib.suppress(OSError):
            while self.socket.recv(65536, socket.MSG_DONTWAIT):
                continue
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
