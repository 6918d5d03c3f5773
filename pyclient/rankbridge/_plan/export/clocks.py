"""By how much the clocks of ranks differ, as far as their records prove it."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence

from rankbridge._plan.record import RecordedOperation
from rankbridge._plan.timeline import TimelineEntry, timeline


def clock_offsets(records: Mapping[int, Sequence[RecordedOperation]]) -> dict[int, float]:
    """Says by how many seconds each rank's clock is ahead of the clock of the lowest rank.

    No member is admitted to a collective before each of them has announced it. A record in which one was shows two
    clocks that differ. The offset is the least with which nobody is admitted too early: 0.0 if clocks may be equal.

    Args:
        records: By rank, its record.
    """
    met = [it.at for it in timeline(records) if _is_admitted_by_all(it)]
    offsets: dict[int, float] = {}
    for rank in sorted(records):
        offsets[rank] = _offset(rank, met, offsets)
    return offsets


def _is_admitted_by_all(entry: TimelineEntry) -> bool:
    # A function on a leader's command begins on each member by itself.
    return all(
        it.announced is not None and it.entered is not None and not it.function for it in entry.at.values()
    )


def _offset(rank: int, met: Iterable[Mapping[int, RecordedOperation]], placed: Mapping[int, float]) -> float:
    """The offset of a rank, given those of others."""
    least, most = -math.inf, math.inf
    for at in met:
        if rank not in at:
            continue
        announced, entered = _moments(at[rank])
        for other, offset in placed.items():
            if other in at:
                its_announced, its_entered = _moments(at[other])
                most = min(most, entered - (its_announced - offset))
                least = max(least, announced - (its_entered - offset))
    return min(max(0.0, least), most)


def _moments(it: RecordedOperation) -> tuple[float, float]:
    return it.called + (it.announced or 0.0), it.called + (it.entered or 0.0)
