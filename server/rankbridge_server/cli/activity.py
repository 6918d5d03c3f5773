"""What a gang does now: how much, how far apart its ranks come, and which operation takes longest."""

from __future__ import annotations

import math
import re
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from .every_rank import every_rank
from .survey import Pending, Survey, survey

if TYPE_CHECKING:
    from rankbridge import Gang, TimelineEntry

LOOKED_AT = 100
"""Operations of each rank's record that are looked at, the last ones."""
_BITS = re.compile(r"\bdtype=[a-z]+(\d*)")
_SHAPE = re.compile(r"\bshape=\[([\d, ]*)\]")


@dataclass(frozen=True, slots=True)
class Activity:
    """The ranks at one moment. `entries`: their last operations; `offsets`: what their clocks are ahead.

    `at`: seconds of a steady clock. `sequences`: operations of a group on a rank that were admitted, and in which
    generation. `before`: the look before this one, from which rates count.
    """

    found: Survey
    entries: Sequence[TimelineEntry]
    offsets: Mapping[int, float]
    at: float
    sequences: Mapping[tuple[str, int], tuple[int, int]]
    before: Activity | None = None

    @property
    def groups(self) -> list[GroupActivity]:
        """Each group, by name."""
        return _groups(self)

    @property
    def ranks(self) -> list[RankActivity]:
        """Each rank."""
        return _ranks(self)

    def rate(self, group: str, rank: int) -> float | None:
        """Operations of a group on a rank that are admitted in a second; None: not known yet."""
        if self.before is None:
            return None
        now, then = self.sequences.get((group, rank)), self.before.sequences.get((group, rank))
        if now is None or then is None or now[0] != then[0]:
            return None
        return (now[1] - then[1]) / max(self.at - self.before.at, 1e-6)


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupActivity:
    """A group, now and in the operations that ranks have recorded last.

    `per_second`: operations admitted, since the look before; `bytes_per_second`: of each member's tensors in them.
    `oldest`: what is pending for longest. `last`: the rank that came last most often, in `last_in` of `of` operations,
    `behind` seconds after the first one on average. `slowest`: the operation that took longest, `took` seconds.
    """

    name: str
    ranks: tuple[int, ...]
    per_second: float | None
    bytes_per_second: float | None
    pending: int
    oldest: Pending | None
    last: int | None
    last_in: int
    of: int
    behind: float | None
    slowest: str
    took: float | None
    site: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RankActivity:
    """A rank. `last_in`: of how many of the last `of` operations it was the last comer. `since`: of its state."""

    rank: int
    host: str
    pid: int | None
    generation: int | None
    state: str
    since: float
    pending: int | None
    per_second: float | None
    last_in: int
    of: int


def look(gang: Gang, before: Activity | None = None) -> Activity:
    """Asks every rank. `before`: the look before this one."""
    from rankbridge import clock_offsets, timeline

    found, at = survey(gang, before.found if before else None), time.monotonic()
    records, _ = every_rank(gang, lambda rank: rank.record(limit=LOOKED_AT, caller="controller"))
    if before is not None:
        before = replace(before, before=None)
    sequences = {
        (group.name, it.rank): (group.generation, group.sequence)
        for it in found.statuses
        for group in it.groups
        if group.rank_in_group is not None
    }
    return Activity(found, timeline(records), clock_offsets(records), at, sequences, before)


def _groups(activity: Activity) -> list[GroupActivity]:
    statuses = activity.found.statuses
    members = {
        it.name: it.ranks for status in statuses for it in status.groups if it.rank_in_group is not None
    }
    return [
        _group(activity, name, ranks, [it for it in activity.entries if it.group == name])
        for name, ranks in sorted(members.items())
    ]


def _group(
    activity: Activity,
    name: str,
    ranks: tuple[int, ...],
    entries: Sequence[TimelineEntry],
) -> GroupActivity:
    pending = [it for it in activity.found.pending if it.group == name]
    rates = [it for it in (activity.rate(name, rank) for rank in ranks) if it is not None]
    per_second = max(rates, default=None)
    last, last_in, behind = _last_comer(entries, activity.offsets)
    slowest = max((it for it in entries if it.took is not None), key=lambda it: it.took or 0.0, default=None)
    return GroupActivity(
        name=name,
        ranks=ranks,
        per_second=per_second,
        bytes_per_second=_bytes_per_second(per_second, entries),
        pending=len(pending),
        oldest=pending[0] if pending else None,
        last=last,
        last_in=last_in,
        of=sum(map(_have_met, entries)),
        behind=behind,
        slowest="" if slowest is None else slowest.operation,
        took=None if slowest is None else slowest.took,
        site="" if slowest is None else slowest.site,
    )


def _have_met(entry: TimelineEntry) -> bool:
    """Whether all members have come, so that the last comer is known."""
    return len(entry.at) > 1 and all(it.entered is not None for it in entry.at.values())


def _came(entry: TimelineEntry, offsets: Mapping[int, float]) -> dict[int, float]:
    """When each rank came to an operation."""
    return {rank: it.called - offsets[rank] + (it.announced or 0.0) for rank, it in entry.at.items()}


def _last_comers(
    entries: Sequence[TimelineEntry], offsets: Mapping[int, float]
) -> tuple[Counter[int], dict[int, float]]:
    """Of how many operations each rank was the last comer, and how long after the first ones in all."""
    times, behind = Counter[int](), dict[int, float]()
    for entry in entries:
        came = _came(entry, offsets)
        if _have_met(entry):
            last = max(came, key=lambda rank: came[rank])
            times[last] += 1
            behind[last] = behind.get(last, 0.0) + came[last] - min(came.values())
    return times, behind


def _last_comer(
    entries: Sequence[TimelineEntry], offsets: Mapping[int, float]
) -> tuple[int | None, int, float | None]:
    times, behind = _last_comers(entries, offsets)
    if not times:
        return None, 0, None
    ((last, count),) = times.most_common(1)
    return last, count, behind[last] / count


def _ranks(activity: Activity) -> list[RankActivity]:
    entries = activity.entries
    times, _ = _last_comers(entries, activity.offsets)
    rates: dict[int, list[float]] = {}
    for group, rank in activity.sequences:
        if (rate := activity.rate(group, rank)) is not None:
            rates.setdefault(rank, []).append(rate)
    answered = {it.rank: it for it in activity.found.statuses}
    rows = []
    for rank in sorted({*answered, *activity.found.failures}):
        it = answered.get(rank)
        rows.append(
            RankActivity(
                rank=rank,
                host=it.host if it else "",
                pid=it.pid if it else None,
                generation=it.generation if it else None,
                state=it.generation_state if it else "not reached",
                since=it.generation_since if it else activity.found.lost_since(rank),
                pending=it.pending_operations if it else None,
                per_second=sum(rates[rank]) if rank in rates else None,
                last_in=times[rank],
                of=sum(rank in entry.at and _have_met(entry) for entry in entries),
            )
        )
    return rows


def _bytes_per_second(per_second: float | None, entries: Sequence[TimelineEntry]) -> float | None:
    """By what the last operations have in their contracts; None: no rate is known, or no size."""
    sizes = [it for it in (bytes_of(entry.contract) for entry in entries) if it is not None]
    return None if per_second is None or not sizes else per_second * sum(sizes) / len(entries)


def bytes_of(contract: str) -> int | None:
    """Bytes of a member's tensor by what an operation's contract says; None: it does not say."""
    dtype, shape = _BITS.search(contract), _SHAPE.search(contract)
    if dtype is None or shape is None:
        return None
    size = int(dtype[1]) // 8 if dtype[1] else 1
    return size * math.prod(int(it) for it in shape[1].split(",") if it.strip())
