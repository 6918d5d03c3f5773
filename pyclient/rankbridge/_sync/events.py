"""Watching what happens on ranks, blocking."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from types import TracebackType
from typing import Any, Self

from rankbridge._plan.calls import Call
from rankbridge._plan.events import Event, EventKind, Position, WatchEnded, Watching, watch
from rankbridge._plan.watched import AHEAD, Said, Watched, starts_at
from rankbridge._sync.front import GangFront, RankFront
from rankbridge._transport.threads.channels import SyncChannels
from rankbridge.errors import RankBridgeError

__all__ = ["Events", "GangEvents", "RankEvents"]

_JOIN_TIMEOUT_S = 5.0


class Events(Watched):
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
        channels: SyncChannels,
        calls: Sequence[Call[Watching | Event]],
        starts: Mapping[int, Position | None],
        *,
        alone: bool,
    ) -> None:
        """Made by ``Gang.events`` and ``Rank.events``."""
        super().__init__(starts, alone)
        self._channels = channels
        self._changed = threading.Condition()
        self._said: deque[Said] = deque()
        self._closed = False
        self._streams: list[Any] = []
        self._threads: list[threading.Thread] = []
        try:
            for call in calls:
                stream = channels.stream(call)
                self._streams.append(stream)
                reader = threading.Thread(
                    target=self._read, args=(call, stream), name="rankbridge-events", daemon=True
                )
                reader.start()
                self._threads.append(reader)
            self._begin(calls)
        except BaseException:
            self.close()
            raise

    def __iter__(self) -> Self:
        """Gives itself."""
        return self

    def __next__(self) -> Event | WatchEnded:
        """Waits for the next event.

        Raises:
            RankBridgeError: The one rank that is watched tells nothing more, because of this.
        """
        while True:
            if self._ready:
                return self._ready.popleft()
            if not self._open:
                raise StopIteration
            said = self._next(None)
            if said is None:
                raise StopIteration
            self._take(said)

    def __enter__(self) -> Self:
        """Gives itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Closes it."""
        self.close()

    def close(self) -> None:
        """Stops watching. Whoever waits for an event gets none."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()
        for stream in self._streams:
            stream.cancel()
        for reader in self._threads:
            reader.join(_JOIN_TIMEOUT_S)

    def _begin(self, calls: Sequence[Call[Watching | Event]]) -> None:
        deadline = time.monotonic() + max(call.deadline for call in calls)
        while self._silent:
            said = self._next(deadline - time.monotonic())
            if said is None:
                for call, stream in zip(calls, self._streams, strict=True):
                    if call.rank in self._silent:
                        stream.cancel()
                        self._late(call)
            else:
                self._take(said)
        self._begun()

    def _next(self, timeout: float | None) -> Said | None:
        with self._changed:
            if not self._changed.wait_for(lambda: self._said or self._closed, timeout) or self._closed:
                return None
            self._changed.notify_all()
            return self._said.popleft()

    def _read(self, call: Call[Watching | Event], stream: Any) -> None:
        ended: RankBridgeError | None = None
        try:
            for what in self._channels.read(call, stream):
                self._say(call.rank, what)
        except RankBridgeError as error:
            ended = error
        self._say(call.rank, ended)

    def _say(self, rank: int, what: Watching | Event | RankBridgeError | None) -> None:
        with self._changed:
            self._changed.wait_for(lambda: len(self._said) < AHEAD or self._closed)
            self._said.append(Said(rank, what))
            self._changed.notify_all()


class RankEvents(RankFront):
    """The part of a rank that tells what happens on it."""

    def events(
        self,
        kinds: Iterable[EventKind] = (),
        *,
        after: Position | int | None = None,
        timeout: float | None = None,
    ) -> Events:
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
        return Events(self._gang._channels, [call], starts, alone=True)


class GangEvents(GangFront):
    """The part of a gang that tells what happens on its ranks."""

    def events(
        self,
        kinds: Iterable[EventKind] = (),
        *,
        after: Mapping[int, Position] | Position | int | None = None,
        timeout: float | None = None,
    ) -> Events:
        """Watches what happens on every rank.

        Events of one rank come in their order; those of different ranks as they come in.

        Args:
            kinds: As of ``Rank.events``.
            after: As of ``Rank.events``, for every rank or by rank; `position` of the watch before.
            timeout: As of ``Rank.events``.

        Returns:
            An iterator. A rank that tells nothing more is a ``WatchEnded``, and the watch of the others goes on.
        """
        wanted = tuple(kinds)
        starts = starts_at(after, self._all())
        calls = [watch(self._scope(rank), wanted, start, timeout) for rank, start in starts.items()]
        return Events(self._channels, calls, starts, alone=False)
