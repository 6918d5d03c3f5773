"""Waking a thread that polls."""

from __future__ import annotations

import socket
from contextlib import suppress


class Waker:
    """Wakes a thread that polls it. Raises OSError when there are no file descriptors left."""

    def __init__(self) -> None:
        self._out, self._in = socket.socketpair()
        # A full buffer is enough to wake the thread, and the waking thread may hold a lock that it waits for.
        self._in.setblocking(False)

    def fileno(self) -> int:
        """File descriptor, readable when the thread is to wake."""
        return self._out.fileno()

    def wake(self) -> None:
        """Wakes the thread. Does nothing after `close`."""
        with suppress(OSError):
            self._in.send(b"x")

    def clear(self) -> None:
        """Called by the thread that was woken."""
        self._out.recv(64)

    def close(self) -> None:
        """Gives the file descriptors back."""
        self._out.close()
        self._in.close()
