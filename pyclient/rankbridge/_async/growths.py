"""Watching how the record of a rank grows, for asyncio."""

from __future__ import annotations

import time
from types import TracebackType
from typing import Self

from rankbridge._plan.calls import Call
from rankbridge._plan.positions import Position
from rankbridge._plan.record import RecordGrowth
from rankbridge._transport.aio.channels import AsyncChannels
from rankbridge._transport.aio.readings import AsyncReadings
from rankbridge.errors import DeadlineExceededError, RankBridgeError


class AsyncRecordWatch:
    """How the record of one rank grows: an iterator that waits for the next ``RecordGrowth``.

    The first is there at once. Each tells what has ended since the one before, and what is pending. Where nothing
    happens, one comes each second: a rank that gives none for longer is stopped, or cannot be reached. A slow reader
    delays no rank: it loses operations, and `lost` counts them. Use it in an ``async with`` statement, or close it.

    Attributes:
        position: How far the record was read, for `after` of another watch. None: nothing was read yet.
    """

    def __init__(self, channels: AsyncChannels, call: Call[RecordGrowth]) -> None:
        """Made by ``AsyncRank.watch_record``."""
        self.position: Position | None = None
        self._call = call
        self._first: RecordGrowth | None = None
        self._open = True
        self._readings = AsyncReadings(channels, [call])

    def __aiter__(self) -> Self:
        """Gives itself."""
        return self

    async def __anext__(self) -> RecordGrowth:
        """Waits for the next growth.

        Raises:
            RankBridgeError: The rank tells nothing more, because of this.
        """
        growth, self._first = self._first, None
        if growth is None:
            growth = await self._next(None)
        if growth is None:
            raise StopAsyncIteration
        self.position = growth.position
        return growth

    async def __aenter__(self) -> Self:
        """Gives itself."""
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Closes it."""
        await self.close()

    async def close(self) -> None:
        """Stops watching. Whoever waits for a growth gets none."""
        await self._readings.close()

    async def _begin(self) -> Self:
        """Waits until the rank has answered.

        Raises:
            RankBridgeError: It cannot be watched.
        """
        try:
            self._first = await self._next(time.monotonic() + self._call.deadline)
        except TimeoutError:
            await self.close()
            raise DeadlineExceededError(
                "the rank did not give its record", rank=self._call.rank, operation=self._call.kind
            ) from None
        except BaseException:
            await self.close()
            raise
        return self

    async def _next(self, until: float | None) -> RecordGrowth | None:
        if not self._open:
            return None
        said = await self._readings.next(until)
        if said is None or isinstance(said.what, RecordGrowth):
            return None if said is None else said.what
        self._open = False
        if isinstance(said.what, RankBridgeError):
            raise said.what
        return None
