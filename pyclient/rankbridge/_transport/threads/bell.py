"""Wakes a thread that signals may interrupt."""

from __future__ import annotations

import threading


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
        """Waits so many seconds at most. Tells whether it has rung."""
        if not self.rung and self._lock.acquire(timeout=-1 if timeout is None else max(0.0, timeout)):
            self._lock.release()
        return self.rung
