"""Watching what happens on ranks, for asyncio."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from types import TracebackType
from typing import Self

from rankbridge._async.front import AsyncGangFront, AsyncRankFront
from rankbridge._plan.calls import Call
from rankbridge._plan.events import Event, EventKind, Position, WatchEnded, Watching, watch
from rankbridge._plan.watched import Watched, starts_at
from rankbridge._transport.aio.channels import AsyncChannels
from rankbridge._transport.aio.readings import AsyncReadings

__all__ = ["AsyncEvents", "AsyncGangEvents", "AsyncRankEvents"]


class AsyncEvents(Watched):
    """What happens on one rank, or on all: an iterator that waits for the next event.

    Ranks are watched from when it was made. It ends when it is closed, or when no rank tells anything more; use it in
    a ``with`` statement, or close it. One that reads slowly holds up no rank: it misses events, which `missed` of the
    next one counts.

    Attributes:
        watching: What each rank told first, by rank; of those that could be watched.
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
        """Made by ``AsyncGang.events`` and ``AsyncRank.events``."""
        super().__init__(starts, alone)
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
        """Waits until every rank has answered, or the first deadline has passed."""
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
            self._begun()
        except BaseException:
            await self.close()
            raise
        return self

    def _give_up(self) -> None:
        for call in self._calls:
            if call.rank in self._silent:
                self._readings.cancel(call.rank)
                self._late(call)


class AsyncRankEvents(AsyncRankFront):
    """The part of a rank that tells what happens on it."""

    async def events(
        self,
        kinds: Iterable[EventKind] = (),
        *,
        after: Position | int | None = None,
        timeout: float | None = None,
    ) -> AsyncEvents:
        """Watches what happens on this rank.

        Args:
            kinds: Which kinds of events: "formed", "over", "mismatch", "peer_missing", "straggler". None named: all.
            after: The events after the one of this number, as far as the rank has kept them; 0: all that it has.
                With a ``Position``, another process in the rank's place begins with all that it has. None: what
                happens from now on.
            timeout: Longest time until the rank says that it is watched, in seconds. None: the gang's default.
                Watching itself goes on for as long as it is wanted.

        Returns:
            An iterator, which raises what ends the watch (``UnavailableError``: the rank is gone), and ends when
            the rank stops in good order.
        """
        starts = starts_at(after, [self.rank])
        call = watch(self._scope, kinds, starts[self.rank], timeout)
        return await AsyncEvents(self._gang._channels, [call], starts, alone=True)._begin()


class AsyncGangEvents(AsyncGangFront):
    """The part of a gang that tells what happens on its ranks."""

    async def events(
        self,
        kinds: Iterable[EventKind] = (),
        *,
        after: Mapping[int, Position] | Position | int | None = None,
        timeout: float | None = None,
    ) -> AsyncEvents:
        """Watches what happens on every rank.

        Events of one rank come in their order; those of different ranks as they come in.

        Args:
            kinds: As of ``AsyncRank.events``.
            after: As of ``AsyncRank.events``, for every rank or by rank; `position` of the watch before.
            timeout: As of ``AsyncRank.events``.

        Returns:
            An iterator. A rank that tells nothing more is a ``WatchEnded``, and the watch of the others goes on.
        """
        wanted = tuple(kinds)
        starts = starts_at(after, self._all())
        calls = [watch(self._scope(rank), wanted, start, timeout) for rank, start in starts.items()]
        return await AsyncEvents(self._channels, calls, starts, alone=False)._begin()
