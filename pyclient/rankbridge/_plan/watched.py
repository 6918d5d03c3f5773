"""What a watch of ranks knows and decides without any I/O, for its sync and its async front."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from rankbridge._plan.calls import Call
from rankbridge._plan.events import Event, Position, WatchEnded, Watching
from rankbridge.errors import DeadlineExceededError, Outcome, RankBridgeError, gang_error

AHEAD = 64
"""How many responses are read before they are asked for."""


class Said(NamedTuple):
    """What a rank has said: how it is, an event, or what ended its watch; None: it has ended in good order."""

    rank: int
    what: Watching | Event | RankBridgeError | None


class Watched:
    """Ranks that are watched, and what they have said."""

    def __init__(self, starts: Mapping[int, Position | None], alone: bool) -> None:
        """`starts`: where the watch of each rank begins. `alone`: there is one rank, whose end is the watch's."""
        self.watching: dict[int, Watching] = {}
        self.position: dict[int, Position] = {}
        self._alone = alone
        self._starts = starts
        self._silent = set(starts)
        self._open = set(starts)
        self._ready: deque[Event | WatchEnded] = deque()

    def _take(self, said: Said) -> None:
        rank, what = said
        if rank not in self._open:
            return
        if isinstance(what, Watching):
            self._silent.discard(rank)
            self.watching[rank] = what
            self.position[rank] = _start(self._starts[rank], what)
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

    def _late(self, call: Call[Any]) -> None:
        error = DeadlineExceededError(
            "the rank did not say that it is watched", rank=call.rank, operation=call.kind
        )
        self._take(Said(call.rank, error))

    def _begun(self) -> None:
        """Raise what every rank has failed with, if none can be watched."""
        if not self.watching and self._ready:
            ended = [it for it in self._ready if isinstance(it, WatchEnded) and it.error is not None]
            if ended:
                raise gang_error([Outcome(rank=it.rank, error=it.error) for it in ended])


def starts_at(
    after: Mapping[int, Position] | Position | int | None, ranks: Sequence[int]
) -> dict[int, Position | None]:
    """Where the watch of each rank begins; None: with what happens from now on."""
    if isinstance(after, Mapping):
        return {rank: after.get(rank) for rank in ranks}
    return dict.fromkeys(ranks, Position(after) if isinstance(after, int) else after)


def _start(asked: Position | None, watching: Watching) -> Position:
    # As the rank reads it: a position that it cannot have reported begins with all that it has.
    if asked is None:
        return Position(watching.last, watching.log)
    known = asked.log in (0, watching.log) and asked.number <= watching.last
    return Position(asked.number if known else 0, watching.log)
