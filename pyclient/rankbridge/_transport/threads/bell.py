"""Wakes a thread that signals may interrupt."""

from __future__ import annotations

import math
import threading
import time

_LOOK_S = 0.2
"""A signal that comes just before a thread blocks does not wake it: so often the thread looks whether one has come."""


class Bell:
    """Rings once. Any number of threads may wait for it, also those that signals interrupt.

    Attributes:
        rung: Whether it has.
    """

    __slots__ = ("_lock", "rung")

    def __init__(self) -> None:
        """It has not rung."""
        self.rung = False
        # Not a condition: an interruption would leave it locked.
        self._lock = threading.Lock()
        self._lock.acquire()

    def ring(self) -> None:
        """Lets go all who wait."""
        self.rung = True
        self._lock.release()

    def wait(self, timeout: float | None = None) -> bool:
        """Waits so many seconds at most. Says whether it has rung."""
        until = math.inf if timeout is None else time.monotonic() + timeout
        left = _LOOK_S if timeout is None else timeout
        while not self.rung and left > 0:
            if self._lock.acquire(timeout=min(left, _LOOK_S)):
                self._lock.release()
                break
            left = until - time.monotonic()
        return self.rung
