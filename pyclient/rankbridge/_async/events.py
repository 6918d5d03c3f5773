"""Watching what happens on ranks, for asyncio."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Self

from rankbridge._plan.calls import Call
from rankbridge._plan.events import Event, Said, WatchEnded, Watching, start_of
from rankbridge._plan.positions import Position
from rankbridge._transport.aio.channels import AsyncChannels
from rankbridge._transport.aio.readings import AsyncReadings
from rankbridge.errors import DeadlineExceededError, Outcome, gang_error


class AsyncEvents:
    """What happens on one rank, or on all: an iterator that waits for the next event.

    It watches from when it was made until it is closed, or no rank can be watched any more. Use it in an
    ``async with`` statement, or close it. A slow reader delays no rank: it misses events, and `missed` of the next
    event counts them.

    Attributes:
        watching: Each rank's first answer, by rank; of those that could be watched.
        position: How far each rank's events were read, by rank, for `after` of another watch.
    """

    def __init__(
        self,
        channels: AsyncChannels,
        calls: Sequence[Call[Watching | Event]],
        starts: Mapping[int, Position | None],
        *,
        alone: bool,
    ) -> None:
        """Made by ``AsyncGang.events`` and ``AsyncRank.events``.

        Args:
            channels: The gang's.
            calls: What asks each rank.
            starts: Where the watch of each rank begins.
            alone: There is one rank, whose end is the watch's.
        """
        self.watching: dict[int, Watching] = {}
        self.position: dict[int, Position] = {}
        self._alone = alone
        self._starts = starts
        self._silent = set(starts)
        self._open = set(starts)
        self._ready: deque[Event | WatchEnded] = deque()
        self._calls = calls
        self._readings = AsyncReadings(channels, calls)

    def __aiter__(self) -> Self:
        """Gives itself."""
        return self

    async def __anext__(self) -> Event | WatchEnded:
        """Waits for the next event.

        Raises:
            RankBridgeError: The one rank that is watched tells nothing more, because of this.
        """
        while True:
            if self._ready:
                return self._ready.popleft()
            if not self._open:
                raise StopAsyncIteration
            said = await self._readings.next()
            if said is None:
                raise StopAsyncIteration
            self._take(said)

    async def __aenter__(self) -> Self:
        """Gives itself."""
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Closes it."""
        await self.close()

    async def close(self) -> None:
        """Stops watching. Whoever waits for an event gets none."""
        await self._readings.close()

    async def _begin(self) -> Self:
        """Waits until every rank has answered, or the first deadline has passed.

        Raises:
            RankBridgeError: No rank can be watched.
        """
        until = time.monotonic() + max(call.deadline for call in self._calls)
        try:
            while self._silent:
                try:
                    said = await self._readings.next(until)
                except TimeoutError:
                    self._give_up()
                    break
                if said is None:
                    break
                self._take(said)
            ended = [it for it in self._ready if isinstance(it, WatchEnded) and it.error is not None]
            if ended and not self.watching:
                raise gang_error([Outcome(rank=it.rank, error=it.error) for it in ended])
        except BaseException:
            await self.close()
            raise
        return self

    def _give_up(self) -> None:
        for call in self._calls:
            if call.rank in self._silent:
                self._readings.cancel(call.rank)
                why = "the rank did not say that it is watched"
                self._take(Said(call.rank, DeadlineExceededError(why, rank=call.rank, operation=call.kind)))

    def _take(self, said: Said) -> None:
        rank, what = said
        if rank not in self._open:
            return
        if isinstance(what, Watching):
            self._silent.discard(rank)
            self.watching[rank] = what
            self.position[rank] = start_of(self._starts[rank], what)
        elif isinstance(what, Event):
            self.position[rank] = Position(what.number, self.position[rank].log)
            self._ready.append(what)
        else:
            self._silent.discard(rank)
            self._open.discard(rank)
            if not self._alone:
                self._ready.append(WatchEnded(rank=rank, error=what))
            elif what is not None:
                raise what
