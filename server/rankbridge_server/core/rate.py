"""A limit on how much is written in a second: what strangers cause must not fill a disk."""

from __future__ import annotations

import threading
import time


class Rate:
    """Lets `most` lines a second through. Thread-safe."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._lock = threading.Lock()
        self._second = 0
        self._lines = 0
        self._left_out = 0

    def lets_through(self) -> int | None:
        """None: too many, leave it out. Otherwise how many were left out since the last one that was not."""
        now = int(time.monotonic())
        with self._lock:
            if now != self._second:
                self._second, self._lines = now, 0
            self._lines += 1
            if self._lines > self._most:
                self._left_out += 1
                return None
            left_out, self._left_out = self._left_out, 0
            return left_out
