"""Closing sessions whose lease has ended."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable


class Reaper:
    """A thread, started with the first lease, that calls `expire` whenever a lease may have ended.

    `expire` returns when the next lease ends, in seconds of `time.monotonic`; None: there is none.
    """

    def __init__(self, expire: Callable[[], float | None]) -> None:
        self._expire = expire
        self._changed = threading.Condition()
        self._woken = False
        self._thread: threading.Thread | None = None

    def wake(self) -> None:
        """Wakes the thread, because there is a new lease."""
        with self._changed:
            self._woken = True
            self._changed.notify()
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="reaper", daemon=True)
                self._thread.start()

    def _run(self) -> None:
        while True:
            due = self._expire()
            with self._changed:
                wait = None if due is None else max(0.0, due - time.monotonic())
                self._changed.wait_for(lambda: self._woken, wait)
                self._woken = False
