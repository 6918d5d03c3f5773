"""Which entries in the records of a group's members are of the same operation, whether it was given an id or not."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from rankbridge._plan.record import RecordedOperation


@dataclass(frozen=True, slots=True)
class Coming:
    """How a member came to an operation. Times are seconds on one clock.

    Attributes:
        record: Its record.
        came: When it was announced.
        ruled: When it was known how the admission ended. `math.inf`: it is not.
    """

    record: RecordedOperation
    came: float
    ruled: float

    @property
    def is_admitted(self) -> bool:
        """Whether all members had come."""
        return self.record.entered is not None

    @property
    def is_pending(self) -> bool:
        """Whether its admission had not ended when the record was read."""
        return self.ruled == math.inf


_JITTER_S = 0.001
"""By which the times of two readings of one record differ at most."""

Meeting = Mapping[int, Coming]
"""An operation: by rank, how the members came that have come."""


def meetings(
    records: Mapping[int, Sequence[RecordedOperation]],
    offsets: Mapping[int, float],
    before: Mapping[int, Sequence[RecordedOperation]] | None = None,
) -> Iterator[Meeting]:
    """Puts together what members of one group have recorded in one generation, in the order of the group.

    Args:
        records: By rank, what it has recorded. What was not announced is left out.
        offsets: By how many seconds each rank's clock is ahead (`clock_offsets`).
        before: Their records some time before. None: they are not known.

    An operation with an absent member is left out if that member's record may have lost it: if all had come, or if the
    record begins later. What is pending is left out if it was not before: the others may be about to come.
    """
    left = {rank: deque(_comings(record, offsets[rank])) for rank, record in records.items()}
    begins = {rank: _begin(record) - offsets[rank] for rank, record in records.items()}
    known = {rank: _newest(record) for rank, record in (records if before is None else before).items()}
    while heads := {rank: comings[0] for rank, comings in left.items() if comings}:
        met = _first(heads)
        for rank in met:
            left[rank].popleft()
        absent = records.keys() - met.keys()
        if not absent:
            yield met
        elif all(it.is_pending for it in met.values()):
            if any(it.record.called <= known.get(rank, -math.inf) + _JITTER_S for rank, it in met.items()):
                yield met
        elif not any(it.is_admitted for it in met.values()):
            came = min(it.came for it in met.values())
            if all(begins[rank] <= came for rank in absent):
                yield met


def _first(heads: Mapping[int, Coming]) -> Meeting:
    """Of each member's first operation, those that met first: they came before it was ruled on any of them."""
    first = min(heads.values(), key=lambda it: it.ruled)
    return {
        rank: it
        for rank, it in heads.items()
        if it.came <= first.ruled
        and (it.is_pending or it.is_admitted == first.is_admitted)
        and _may_be_one(it, first)
    }


def _may_be_one(one: Coming, other: Coming) -> bool:
    # Those that were not admitted may have met although they asked for different ones.
    ids = {one.record.operation_id, other.record.operation_id}
    return not other.is_admitted or len(ids) == 1 or "" in ids


def _comings(record: Sequence[RecordedOperation], offset: float) -> Iterator[Coming]:
    for it in sorted(record, key=lambda it: it.called):
        if it.announced is not None:
            called = it.called - offset
            ruled = it.entered if it.entered is not None else it.done
            yield Coming(it, called + it.announced, math.inf if ruled is None else called + ruled)


def _begin(record: Sequence[RecordedOperation]) -> float:
    """Since when a record has everything. It drops what has ended first."""
    return min((it.called + it.done for it in record if it.done is not None), default=-math.inf)


def _newest(record: Sequence[RecordedOperation]) -> float:
    return max((it.called for it in record), default=-math.inf)
