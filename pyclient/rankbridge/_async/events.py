"""Watching what happens on ranks, for asyncio."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from types import TracebackType
from typing import Any, Self

from rankbridge._async.front import AsyncGangFront, AsyncRankFront
from rankbridge._plan.calls import Call
from rankbridge._plan.events import Event, EventKind, Position, WatchEnded, Watching, watch
from rankbridge._plan.watched import AHEAD, Said, Watched, starts_at
from rankbridge._transport.aio.channels import AsyncChannels
from rankbridge.errors import RankBridgeError

__all__ = ["AsyncEvents", "AsyncGangEvents", "AsyncRankEvents"]


class AsyncEvents(Watched):
    """What happens on one rank, or on all, as ``Events``: for ``async for`` and ``async with``.

    Attributes:
        watching: What each rank told first, by rank; of those that could be watched.
        position: How far each rank's events were read, by rank, for `after` of another watch.
    """

    def __init__(
        self, channels: AsyncChannels, starts: Mapping[int, Position | None], *, alone: bool
    ) -> None:
        """Made by ``AsyncGang.events`` and ``AsyncRank.events``."""
        super().__init__(starts, alone)
        self._channels = channels
        self._said: asyncio.Queue[Said | None] = asyncio.Queue(AHEAD)
        self._closed = False
        self._tasks: dict[int, asyncio.Task[None]] = {}

    def __aiter__(self) -> Self:
        """Gives itself."""
        return self

    async def __anext__(self) -> Event | WatchEnded:
        """As ``Events.__next__``."""
        while True:
            if self._ready:
                return self._ready.popleft()
            if not self._open or self._closed:
                raise StopAsyncIteration
            said = await self._said.get()
            if said is not None:
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
        """As ``Events.close``."""
        self._closed = True
        for task in self._tasks.values():
            task.cancel()
        await asyncio.gather(*self._tasks.values(), return_exceptions=True)
        while not self._said.empty():
            self._said.get_nowait()
        # For who waits for an event.
        self._said.put_nowait(None)

    async def _begin(self, calls: Sequence[Call[Watching | Event]]) -> Self:
        try:
            for call in calls:
                stream = self._channels.stream(call)
                self._tasks[call.rank] = asyncio.create_task(self._read(call, stream))
            try:
                async with asyncio.timeout(max(call.deadline for call in calls)):
                    while self._silent:
                        said = await self._said.get()
                        if said is not None:
                            self._take(said)
            except TimeoutError:
                for call in calls:
                    if call.rank in self._silent:
                        self._tasks[call.rank].cancel()
                        self._late(call)
            self._begun()
        except BaseException:
            await self.close()
            raise
        return self

    async def _read(self, call: Call[Watching | Event], stream: Any) -> None:
        ended: RankBridgeError | None = None
        try:
            async for what in self._channels.read(call, stream):
                await self._said.put(Said(call.rank, what))
        except RankBridgeError as error:
            ended = error
        finally:
            stream.cancel()
        await self._said.put(Said(call.rank, ended))


class AsyncRankEvents(AsyncRankFront):
    """The part of a rank that tells what happens on it."""

    async def events(
        self,
        kinds: Iterable[EventKind] = (),
        *,
        after: Position | int | None = None,
        timeout: float | None = None,
    ) -> AsyncEvents:
        """As ``Rank.events``."""
        starts = starts_at(after, [self.rank])
        call = watch(self._scope, kinds, starts[self.rank], timeout)
        return await AsyncEvents(self._gang._channels, starts, alone=True)._begin([call])


class AsyncGangEvents(AsyncGangFront):
    """The part of a gang that tells what happens on its ranks."""

    async def events(
        self,
        kinds: Iterable[EventKind] = (),
        *,
        after: Mapping[int, Position] | Position | int | None = None,
        timeout: float | None = None,
    ) -> AsyncEvents:
        """As ``Gang.events``."""
        wanted = tuple(kinds)
        starts = starts_at(after, self._all())
        calls = [watch(self._scope(rank), wanted, start, timeout) for rank, start in starts.items()]
        return await AsyncEvents(self._channels, starts, alone=False)._begin(calls)
