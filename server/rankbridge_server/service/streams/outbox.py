"""What is to be written to a socket: at once where nobody has to wait for it, else by a thread."""

from __future__ import annotations

import socket
import threading
from collections import deque
from collections.abc import Callable
from contextlib import suppress

_BUFFER_BYTES = 64 * 1024


class Outbox:
    """Writes what it is given, in order, and gives the socket back when it is closed. Thread-safe."""

    def __init__(self, sock: socket.socket) -> None:
        self._sock = sock
        self._lock = threading.Lock()
        self._waiting: deque[tuple[memoryview, Callable[[], None]]] = deque()
        # Whether a thread is at it, and all else waits for its turn.
        self._writing = False
        self._closed = False

    def put(self, data: bytes, written: Callable[[], None]) -> None:
        """Write this after all that was put before; never waits. `written` is called when that is done, or in vain."""
        with self._lock:
            rest = memoryview(data)
            if not self._writing:
                rest = rest[self._written(data) :]
            if rest:
                self._waiting.append((rest, written))
                if not self._writing:
                    self._writing = True
                    threading.Thread(target=self._write, name="outbox", daemon=True).start()
                return
        written()

    def shut(self) -> None:
        """End the connection in both directions: who reads it, writes it or is at its other end sees that."""
        with self._lock, suppress(OSError):
            self._sock.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """Give the socket back. What was not written is not any more, and what has come is thrown away."""
        self.shut()
        with self._lock:
            self._closed = True
            # A socket that is closed with something unread is a broken connection to the other side.
            with suppress(OSError):
                while self._sock.recv(_BUFFER_BYTES, socket.MSG_DONTWAIT):
                    continue
            if not self._writing:
                self._sock.close()

    def _written(self, data: bytes) -> int:
        """How much could be; with the lock held. To one who has gone, all of it: who reads is told of that."""
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
