"""Writing to a socket without waiting: at once as far as the socket takes it, the rest on a thread."""

from __future__ import annotations

import socket
import threading
from collections import deque
from collections.abc import Callable
from contextlib import suppress

from ...core import engine_threads

_BUFFER_BYTES = 64 * 1024


class Outbox:
    """Writes data in order, and closes the socket at the end. Thread-safe."""

    def __init__(self, sock: socket.socket) -> None:
        self._sock = sock
        self._lock = threading.Lock()
        self._waiting: deque[tuple[memoryview, Callable[[], None]]] = deque()
        # Whether a thread is writing; all other data waits for its turn then.
        self._writing = False
        self._closed = False

    def put(self, data: bytes, written: Callable[[], None]) -> None:
        """Writes data after all that was put before; never waits. Calls `written` after success and failure alike."""
        with self._lock:
            rest = memoryview(data)
            if not self._writing:
                rest = rest[self._written(data) :]
            if rest:
                self._waiting.append((rest, written))
                if not self._writing:
                    self._writing = True
                    engine_threads.start("outbox", self._write)
                return
        written()

    def shut(self) -> None:
        """Shuts the connection in both directions, which ends every read and write, also at the other end."""
        with self._lock, suppress(OSError):
            self._sock.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """Closes the socket. Drops the data that was not written, and the data that has come."""
        self.shut()
        with self._lock:
            self._closed = True
            # A socket that is closed with unread data breaks the connection for the other side.
            with suppress(OSError):
                while self._sock.recv(_BUFFER_BYTES, socket.MSG_DONTWAIT):
                    continue
            if not self._writing:
                self._sock.close()

    def _written(self, data: bytes) -> int:
        """The number of bytes written; all, if the caller has gone: the reader sees that. The lock is held."""
        if self._closed:
            return len(data)
        try:
            return self._sock.send(data, socket.MSG_DONTWAIT)
        except BlockingIOError:
            return 0
        except OSError:
            return len(data)

    def _write(self) -> None:
        while True:
            with self._lock:
                if not self._waiting:
                    self._writing = False
                    if self._closed:
                        self._sock.close()
                    return
                data, written = self._waiting.popleft()
            with suppress(OSError):
                self._sock.sendall(data)
            written()
