"""Keeping sessions alive from a thread."""

from __future__ import annotations

import threading
import time
import weakref
from collections.abc import Callable

from rankbridge._plan.leases import Schedule


class Renewing:
    """Calls `renew` every `period` seconds in a daemon thread, until `end`.

    The thread also ends when nothing else refers to the object of `renew` any more: a gang that is dropped without
    being closed loses its sessions.
    """

    def __init__(self, period: float, renew: Callable[[], None]) -> None:
        """Starts the thread. `renew` is a method that does not raise."""
        self._period = period
        self._renew = weakref.WeakMethod(renew)
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="rankbridge-leases", daemon=True)
        self._thread.start()

    def end(self) -> None:
        """Begins no further renewal. One that is under way may go on for a moment."""
        self._ended.set()

    def join(self) -> None:
        """Waits until a renewal that was under way has ended."""
        self._thread.join()

    def _run(self) -> None:
        schedule = Schedule(self._period, time.monotonic())
        while not self._ended.wait(schedule.wait(time.monotonic())):
            schedule.renewed(time.monotonic())
            renew = self._renew()
            if renew is None:
                return
            renew()
            del renew
