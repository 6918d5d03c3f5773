"""One control link: a connected stream socket, for one group."""

from __future__ import annotations

import contextlib
import os
import select
import socket
import struct
import threading
import time
from collections.abc import Sequence
from pathlib import Path

from ..core.address import Address
from ..core.peer_user import peer_of
from . import wire
from .wire import Frames

# A peer that reads nothing for this long counts as dead.
SEND_TIMEOUT_S = 5


class Link:
    """A socket to one sidecar. Any thread may send; one at a time receives.

    `rank` and `group`: known after the hello. `frames` cuts what is received. `leaving`: the other side has said
    goodbye, so its end is no loss.
    """

    def __init__(self, sock: socket.socket) -> None:
        self.socket = sock
        self.rank: int | None = None
        self.group = ""
        self.leaving = False
        self.last_heard = time.monotonic()
        self.frames = Frames()
        self._lock = threading.Lock()
        if sock.family != socket.AF_UNIX:
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        sock.setblocking(True)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, struct.pack("ll", SEND_TIMEOUT_S, 0))
        # A thread in `recv` on a unix socket wakes whenever the other side reads; a thread that polls does not.
        self._poll = select.poll()
        self._poll.register(sock, select.POLLIN)

    def fileno(self) -> int:
        """The socket's file descriptor."""
        return self.socket.fileno()

    def send(self, data: bytes) -> None:
        """Sends one packed frame. Raises OSError when the link is broken."""
        with self._lock:
            self.socket.sendall(data)

    def wait(self, timeout: float) -> bool:
        """Waits at most `timeout` seconds for something to receive. Returns whether there is."""
        return bool(self._poll.poll(max(0.0, timeout) * 1000))

    def receive(self) -> Sequence[bytes]:
        """The bodies of the frames that have come, if any. Never waits.

        Raises ConnectionError at the end of the link, ValueError for a frame that is too long.
        """
        try:
            data = self.socket.recv(4096, socket.MSG_DONTWAIT)
        except BlockingIOError:
            return ()
        except ConnectionResetError:
            # A process that is killed resets the link, instead of closing it, if it had something left to read.
            data = b""
        if not data:
            raise ConnectionError("its link was closed")
        self.last_heard = time.monotonic()
        return self.frames.feed(data)

    def other_side_runs(self) -> bool:
        """Whether the other side is a process of this host that neither is stopped nor has ended."""
        return self._other_side() in tuple("RSD")

    def other_side_is_stopped(self) -> bool:
        """Whether the other side is a process of this host that is stopped."""
        return self._other_side() in tuple("Tt")

    def _other_side(self) -> str:
        """The state of the other side's process, as /proc has it; empty: not of this host, or it has ended."""
        try:
            return Path(f"/proc/{self.other_pid()}/stat").read_text().rpartition(")")[2].split()[0]
        except OSError:
            return ""

    def other_pid(self) -> int:
        """The other side's process; 0: it is not of this host, or the link is closed."""
        try:
            return peer_of(self.socket)[0] if self.socket.family == socket.AF_UNIX else 0
        except OSError:
            return 0

    def shut(self) -> None:
        """Shuts both directions, which wakes the threads that wait for the link."""
        # It may be disconnected already.
        with contextlib.suppress(OSError):
            self.socket.shutdown(socket.SHUT_RDWR)

    def part(self) -> None:
        """Says goodbye and sends nothing after it. The other side may still send: see `close`."""
        with contextlib.suppress(OSError):
            self.send(wire.GOODBYE)
            self.socket.shutdown(socket.SHUT_WR)

    def close(self) -> None:
        """Closes the socket. No thread may be using it.

        Reads what has come first: a socket that is closed with unread data drops the data that it has sent.
        """
        self.shut()
        with contextlib.suppress(OSError):
            while self.socket.recv(4096, socket.MSG_DONTWAIT):
                continue
        self.socket.close()


def listen(address: str) -> tuple[socket.socket, str]:
    """Listens on "unix:/path", or on "host:port" with port 0 for any. Returns the socket and its address."""
    if address.startswith("unix:"):
        sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        sock.bind(address.removeprefix("unix:"))
        os.chmod(address.removeprefix("unix:"), 0o600)
        sock.listen(1024)
        return sock, address
    host, port = Address.parse(address)
    family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0][0]
    sock = socket.create_server((host, port or 0), family=family, backlog=1024)
    return sock, str(Address(host, sock.getsockname()[1]))


def dial(address: str, timeout: float) -> socket.socket:
    """Connects to an address of `listen`, in `timeout` seconds. Raises OSError."""
    if address.startswith("unix:"):
        sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        sock.settimeout(timeout)
        sock.connect(address.removeprefix("unix:"))
        return sock
    host, port = Address.parse(address)
    return socket.create_connection((host, port or 0), timeout)
