"""Callbacks that run at a given time, unless they are cancelled before."""

from __future__ import annotations

import math
import sys
import threading
import time
from collections.abc import Callable


class Alarms:
    """A thread, started with the first alarm, that calls each callback when it is due. Thread-safe.

    Setting and cancelling an alarm is cheap and wakes no thread, because almost all alarms are cancelled.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._changed = threading.Condition(threading.Lock())
        self._set: dict[object, tuple[float, Callable[[], None]]] = {}
        # When the thread wakes next; infinite before the first alarm.
        self._looks = math.inf
        self._thread: threading.Thread | None = None

    def set(self, key: object, due: float, ring: Callable[[], None]) -> None:
        """Calls `ring` at `due`, in seconds of `time.monotonic`. It must be quick. A key has only its last alarm."""
        with self._changed:
            self._set[key] = due, ring
            if due < self._looks:
                self._looks = due
                self._changed.notify()
                if self._thread is None:
                    self._thread = threading.Thread(target=self._run, name=self._name, daemon=True)
                    self._thread.start()

    def cancel(self, key: object) -> None:
        """Cancels the alarm of a key, if there is one."""
        with self._changed:
            self._set.pop(key, None)

    def _run(self) -> None:
        while True:
            for ring in self._wait():
                try:
                    ring()
                except Exception:
                    # The error is reported as an uncaught error of a thread; the other alarms still ring.
                    args = threading.ExceptHookArgs((*sys.exc_info(), threading.current_thread()))
                    threading.excepthook(args)

    def _wait(self) -> list[Callable[[], None]]:
        with self._changed:
            while (now := time.monotonic()) < self._looks:
                self._changed.wait(None if self._looks == math.inf else self._looks - now)
            due = [key for key, (when, _) in self._set.items() if when <= now]
            rings = [self._set.pop(key)[1] for key in due]
            self._looks = min((when for when, _ in self._set.values()), default=math.inf)
            return rings
