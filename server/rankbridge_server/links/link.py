"""One control link: a connected stream socket, for one group."""

from __future__ import annotations

import contextlib
import select
import socket
import struct
import threading
import time
from collections.abc import Sequence

from ..core.address import Address
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
        self.last_heard = time.monotonic()
        self._frames = Frames()
        self._lock = threading.Lock()
        if sock.family != socket.AF_UNIX:
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        sock.setblocking(True)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, struct.pack("ll", SEND_TIMEOUT_S, 0))
        # Who sleeps in `recv` on a unix socket is woken whenever the other side reads; who polls is not.
        self._poll = select.poll()
        self._poll.register(sock, select.POLLIN)

    def fileno(self) -> int:
        """For selectors."""
        return self.socket.fileno()

    def send(self, data: bytes) -> None:
        """Send one packed frame. Raises OSError when the link is broken."""
        with self._lock:
            self.socket.sendall(data)

    def wait(self, timeout: float) -> bool:
        """Wait until there is something to receive, at most `timeout` seconds; tells whether there is."""
        return bool(self._poll.poll(max(0.0, timeout) * 1000))

    def receive(self) -> Sequence[bytes]:
        """The frames that have come, if any, without their lengths.

        Raises ConnectionError at the end, ValueError for one that is too long.
        """
        try:
            data = self.socket.recv(4096, socket.MSG_DONTWAIT)
        except BlockingIOError:
            return ()
        if not data:
            raise ConnectionError("its link was closed")
        self.last_heard = time.monotonic()
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
            while self.socket.recv(4096, socket.MSG_DONTWAIT):
                continue
        self.socket.close()


def listen(address: str) -> tuple[socket.socket, str]:
    """Listen on "unix:/path", or on "host:port" with port 0 for any; returns the socket and its address."""
    if address.startswith("unix:"):
        sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        sock.bind(address.removeprefix("unix:"))
        sock.listen(1024)
        return sock, address
    host, port = Address.parse(address)
    family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0][0]
    sock = socket.create_server((host, port or 0), family=family, backlog=1024)
    return sock, str(Address(host, sock.getsockname()[1]))


def dial(address: str, timeout: float) -> socket.socket:
    """Connect to an address from `listen`, in `timeout` seconds. Raises OSError."""
    if address.startswith("unix:"):
        sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        sock.settimeout(timeout)
        sock.connect(address.removeprefix("unix:"))
        return sock
    host, port = Address.parse(address)
    return socket.create_connection((host, port or 0), timeout)
