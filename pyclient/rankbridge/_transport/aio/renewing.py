"""Keeping sessions alive from a task."""

from __future__ import annotations

import asyncio
import weakref
from collections.abc import Awaitable, Callable
from typing import Any

from rankbridge._plan.leases import Schedule


class AsyncRenewing:
    """Calls `renew` every `period` seconds in a task of the running event loop, until `end`.

    The task also ends when nothing else refers to the object of `renew` any more, as ``Renewing`` does.
    """

    def __init__(self, period: float, renew: Callable[[], Awaitable[Any]]) -> None:
        """Starts the task. `renew` is a coroutine method that does not raise."""
        self._task = asyncio.create_task(_run(period, weakref.WeakMethod(renew)), name="rankbridge-leases")

    def end(self) -> None:
        """Begins no further renewal, and cancels one that is under way."""
        self._task.cancel()

    async def join(self) -> None:
        """Waits until a renewal that was under way has ended."""
        await asyncio.wait([self._task])


async def _run(period: float, method: weakref.WeakMethod[Callable[[], Awaitable[Any]]]) -> None:
    loop = asyncio.get_running_loop()
    schedule = Schedule(period, loop.time())
    while True:
        await asyncio.sleep(schedule.wait(loop.time()))
        schedule.renewed(loop.time())
        renew = method()
        if renew is None:
            return
        await renew()
        del renew
