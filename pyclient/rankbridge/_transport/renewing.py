"""Keeping sessions alive: renewing them on every rank, three times in each lease."""

from __future__ import annotations

import asyncio
import threading
import time
import weakref
from collections.abc import Awaitable, Callable
from typing import Any

__all__ = ["RenewingTask", "RenewingThread", "renewal_period"]


def renewal_period(lease: float | None) -> float | None:
    """Gives the time from one renewing to the next, in seconds: a third of the lease. None: there is no lease."""
    return lease / 3 if lease else None


class _Schedule:
    # Renewing that takes long does not put off the next one.
    def __init__(self, period: float, now: float) -> None:
        self._period = period
        self._due = now + period

    def wait(self, now: float) -> float:
        """Seconds until the next renewing."""
        return max(0.0, self._due - now)

    def renewed(self, now: float) -> None:
        """A renewing begins."""
        self._due = max(self._due, now) + self._period


class RenewingThread:
    """Calls `renew` every `period` seconds in a daemon thread, until told to end.

    It ends as well when nothing but this refers to the object of `renew` any more: who loses a gang without closing
    it loses its sessions.
    """

    def __init__(self, period: float, renew: Callable[[], None]) -> None:
        """Starts the thread. `renew` is a method that does not raise."""
        self._period = period
        self._renew = weakref.WeakMethod(renew)
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="rankbridge-leases", daemon=True)
        self._thread.start()

    def end(self) -> None:
        """Renews no more. What it has under way may go on for a moment."""
        self._ended.set()

    def join(self) -> None:
        """Waits until what was under way has ended."""
        self._thread.join()

    def _run(self) -> None:
        schedule = _Schedule(self._period, time.monotonic())
        while not self._ended.wait(schedule.wait(time.monotonic())):
            schedule.renewed(time.monotonic())
            renew = self._renew()
            if renew is None:
                return
            renew()
            del renew


class RenewingTask:
    """As ``RenewingThread``, in a task of the running event loop."""

    def __init__(self, period: float, renew: Callable[[], Awaitable[Any]]) -> None:
        """Starts the task. `renew` is a coroutine method that does not raise."""
        self._task = asyncio.create_task(_run(period, weakref.WeakMethod(renew)), name="rankbridge-leases")

    async def end(self) -> None:
        """Renews no more, and ends what is under way."""
        self._task.cancel()
        await asyncio.wait([self._task])


async def _run(period: float, method: weakref.WeakMethod[Callable[[], Awaitable[Any]]]) -> None:
    loop = asyncio.get_running_loop()
    schedule = _Schedule(period, loop.time())
    while True:
        await asyncio.sleep(schedule.wait(loop.time()))
        schedule.renewed(loop.time())
        renew = method()
        if renew is None:
            return
        await renew()
        del renew
