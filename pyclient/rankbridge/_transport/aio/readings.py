"""What several ranks say on their streams, read by a task for each."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from typing import Any

from rankbridge._plan.calls import Call
from rankbridge._plan.events import AHEAD, Said
from rankbridge._transport.aio.channels import AsyncChannels
from rankbridge.errors import RankBridgeError


class AsyncReadings:
    """The responses of one stream of each rank, in one queue that holds up to ``AHEAD`` of them."""

    def __init__(self, channels: AsyncChannels, calls: Sequence[Call[Any]]) -> None:
        """Sends every call, and begins to read."""
        self._channels = channels
        self._said: asyncio.Queue[Said | None] = asyncio.Queue(AHEAD)
        self._closed = False
        self._tasks: dict[int, asyncio.Task[None]] = {}
        for call in calls:
            stream = channels.stream(call)
            self._tasks[call.rank] = asyncio.create_task(self._read(call, stream))

    async def next(self, until: float | None = None) -> Said | None:
        """Waits for what a rank says next. None: it is closed.

        Args:
            until: Longest time to wait, by ``time.monotonic``.

        Raises:
            TimeoutError: No rank has said anything.
        """
        if self._closed:
            return None
        async with asyncio.timeout(None if until is None else until - time.monotonic()):
            said = await self._said.get()
        if said is None:
            # For the next who asks.
            self._said.put_nowait(None)
        return said

    def cancel(self, rank: int) -> None:
        """Ends the stream of one rank."""
        self._tasks[rank].cancel()

    async def close(self) -> None:
        """Ends every stream. Whoever waits gets None, now and later."""
        self._closed = True
        for task in self._tasks.values():
            task.cancel()
        await asyncio.gather(*self._tasks.values(), return_exceptions=True)
        while not self._said.empty():
            self._said.get_nowait()
        # For those who wait.
        self._said.put_nowait(None)

    async def _read(self, call: Call[Any], stream: Any) -> None:
        ended: RankBridgeError | None = None
        try:
            async for what in self._channels.read(call, stream):
                await self._said.put(Said(call.rank, what))
        except RankBridgeError as error:
            ended = error
        finally:
            stream.cancel()
        await self._said.put(Said(call.rank, ended))
