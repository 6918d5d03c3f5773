"""A bounded log of a rank's latest events. Any number of watchers read it, each at its own pace."""

from __future__ import annotations

import secrets
import threading
import time
from collections import deque
from collections.abc import Callable, Collection
from dataclasses import dataclass
from enum import Enum, auto
from typing import NamedTuple

from .errors import Failure, exhausted
from .groups.group import GroupView

KEPT = 1024
MAX_WATCHES = 64


class Kind(Enum):
    """The kinds of events. Names are those of `rankbridge.v1.EventKind`."""

    FORMED = auto()
    OVER = auto()
    MISMATCH = auto()
    PEER_MISSING = auto()
    STRAGGLER = auto()


@dataclass(frozen=True, slots=True)
class Formed:
    """A generation was formed, of `world_size` ranks, with these groups."""

    world_size: int
    groups: tuple[GroupView, ...]


@dataclass(frozen=True, slots=True)
class Straggler:
    """An admission that takes long because members are missing.

    `arrived`: rank, rank in group, seconds after the first arrival. `missing`: rank, rank in group. `waited`: seconds
    since the first arrival.
    """

    group: str
    operation: str
    operation_id: str
    arrived: tuple[tuple[int, int, float], ...]
    missing: tuple[tuple[int, int], ...]
    waited: float


Detail = Formed | Failure | Straggler


@dataclass(frozen=True, slots=True)
class Event:
    """One event. `number`: from 1, ascending by one. `time_us`: microseconds since 1970."""

    number: int
    time_us: int
    rank: int
    generation: int
    kind: Kind
    detail: Detail


class WatchedEvent(NamedTuple):
    """An event, and the number of events that its watcher has missed right before it."""

    event: Event
    missed: int


class EventLog:
    """The newest `kept` events of a rank. Thread-safe; adding an event never waits for a watcher.

    `id`: unique among the logs of all processes, and not 0.
    """

    def __init__(self, kept: int = KEPT) -> None:
        self.id = 1 + secrets.randbelow(2**63 - 1)
        self._changed = threading.Condition(threading.Lock())
        self._events: deque[Event] = deque(maxlen=kept)
        self._last = 0
        self._state: Event | None = None
        self._watches = 0
        self._closed = False
        self.notes: list[Callable[[Event], object]] = []
        """Called with each event, by the thread that adds it. They must be quick."""

    def __len__(self) -> int:
        """The number of events in the log."""
        return len(self._events)

    @property
    def state(self) -> Event | None:
        """The newest FORMED or OVER event."""
        return self._state

    @property
    def watches(self) -> int:
        """The number of watchers."""
        return self._watches

    def add(self, kind: Kind, rank: int, generation: int, detail: Detail) -> None:
        """Adds an event that has just happened on this rank."""
        with self._changed:
            self._last += 1
            event = Event(self._last, time.time_ns() // 1000, rank, generation, kind, detail)
            self._events.append(event)
            if kind in (Kind.FORMED, Kind.OVER):
                self._state = event
            self._changed.notify_all()
        for note in self.notes:
            note(event)

    def watch(self, kinds: Collection[Kind] = (), after: int | None = None, log: int = 0) -> Watch:
        """Watches events of these kinds, or of all kinds, after the event number `after`; None: from now on.

        A number from another log, or of a future event, counts as 0: the watch begins with the oldest event in the
        log. Raises RESOURCE_EXHAUSTED.
        """
        with self._changed:
            if self._watches >= MAX_WATCHES:
                got = str(self._watches + 1)
                raise exhausted("too many watchers of this rank", most=str(MAX_WATCHES), got=got)
            self._watches += 1
            if after is None:
                after = self._last
            elif after > self._last or log not in (0, self.id):
                after = 0
            return Watch(self, frozenset(kinds or Kind), after, self._last, self._state)

    def close(self) -> None:
        """Closes the log: each watch ends after the last event."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()

    def _next(self, after: int) -> Event | None:
        # Numbers ascend by one, so the number gives the place in the log.
        if after >= self._last:
            return None
        place = after + 1 - self._events[0].number
        return self._events[max(0, place)]


class Watch:
    """One watcher's place in the log. `last`: number of the newest event. `state`: the newest FORMED or OVER event.

    One thread calls `next`; any calls `close`.
    """

    def __init__(
        self, log: EventLog, kinds: frozenset[Kind], after: int, last: int, state: Event | None
    ) -> None:
        self.last = last
        self.state = state
        self._log = log
        self._kinds = kinds
        self._after = after
        self._missed = 0
        self._open = True

    def next(self) -> WatchedEvent | None:
        """Waits for the next event. Returns None when the watch is closed, or the log is closed and has no more."""
        log = self._log
        with log._changed:
            while self._open:
                event = log._next(self._after)
                if event is None:
                    if log._closed:
                        break
                    log._changed.wait()
                    continue
                self._missed += event.number - self._after - 1
                self._after = event.number
                if event.kind in self._kinds:
                    missed, self._missed = self._missed, 0
                    return WatchedEvent(event, missed)
            return None

    def close(self) -> None:
        """Ends the watch; `next` returns None."""
        with self._log._changed:
            if self._open:
                self._open = False
                self._log._watches -= 1
                self._log._changed.notify_all()
