"""What several ranks have recorded of the same operations, side by side."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from rankbridge._plan.record import RecordedOperation
from rankbridge.errors import intervals


@dataclass(frozen=True, slots=True, kw_only=True)
class TimelineEntry:
    """An operation as its ranks have recorded it.

    Attributes:
        at: What each rank has recorded, by rank.
    """

    at: Mapping[int, RecordedOperation]

    @property
    def operation(self) -> str:
        """Its kind, or the name of the function that it calls."""
        one = self._one
        return one.function or one.operation

    @property
    def group(self) -> str:
        """Name of its group."""
        return self._one.group

    @property
    def caller(self) -> str:
        """Who calls: "controller", by an operation, or "script", the user's own code by torch.distributed."""
        return self._one.caller

    @property
    def operation_id(self) -> str:
        """Its operation id. Empty: its caller gave none, and what other ranks did in it is another entry."""
        return self._one.operation_id

    @property
    def called(self) -> float:
        """When the first rank accepted it, in seconds since 1970. Clocks of several hosts differ."""
        return min(it.called for it in self.at.values())

    @property
    def apart(self) -> float:
        """Seconds between the first rank's call and the last one's."""
        return max(it.called for it in self.at.values()) - self.called

    @property
    def took(self) -> float | None:
        """Seconds from the first rank's call to the last one's answer. None: a rank has not answered yet."""
        ends = [None if it.done is None else it.called + it.done for it in self.at.values()]
        known = [it for it in ends if it is not None]
        return max(known) - self.called if len(known) == len(ends) else None

    @property
    def outcome(self) -> str:
        """How it ended, or how far it is: "done", or "mismatch", or "admission: rank 0; done: ranks 1-3"."""
        return self._each(_outcome)

    @property
    def contract(self) -> str:
        """What its members agree on, with the ranks of each side where they do not."""
        return self._each(lambda it: it.contract or "-")

    @property
    def site(self) -> str:
        """The line of code that has called it, with the ranks where it is not the same."""
        return self._each(lambda it: it.site or "-")

    def __str__(self) -> str:
        """For people: "all_reduce on ranks 0-3, 0.8 ms apart, 5.4 ms, at train.py:12: done"."""
        took = "not yet answered" if self.took is None else f"{self.took * 1000:.1f} ms"
        ranks, apart = intervals(list(self.at)), f"{self.apart * 1000:.1f} ms apart"
        return (
            f"{self.operation} on {ranks}, {apart}, {took}, at {self.site}: {self.outcome} ({self.contract})"
        )

    @property
    def _one(self) -> RecordedOperation:
        return next(iter(self.at.values()))

    def _each(self, say: Callable[[RecordedOperation], str]) -> str:
        sides: dict[str, list[int]] = {}
        for rank, it in self.at.items():
            sides.setdefault(say(it), []).append(rank)
        if len(sides) == 1:
            return next(iter(sides))
        return "; ".join(f"{text}: {intervals(ranks)}" for text, ranks in sides.items())


def timeline(records: Mapping[int, Sequence[RecordedOperation]]) -> list[TimelineEntry]:
    """Puts what ranks have recorded of the same operation side by side, in the order of the first rank's calls.

    Args:
        records: By rank, its record.
    """
    joined: dict[tuple[object, ...], dict[int, RecordedOperation]] = {}
    for rank, record in records.items():
        for place, it in enumerate(record):
            # Without an id, nobody knows which belong together.
            key = (it.generation, it.caller, it.group, it.operation, it.operation_id or (rank, place))
            joined.setdefault(key, {})[rank] = it
    return sorted((TimelineEntry(at=its) for its in joined.values()), key=lambda it: it.called)


def _outcome(it: RecordedOperation) -> str:
    return it.code or (it.phase if it.done is None else "done")
