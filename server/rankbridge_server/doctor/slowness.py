"""A job that moves, in which one rank comes last to nearly every call, and makes the others wait most of the time."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass

from .evidence import Evidence, Group
from .numbering import Numbers, collectives

_LEAST_CALLS = 8
_LAST_SHARE = 0.9
_WAIT_SHARE = 0.5
_LEAST_LATE_S = 0.02


@dataclass(frozen=True)
class Slowness:
    """The rank that is last, in how many of how many calls, and by how many seconds on average."""

    rank: int
    last: int
    calls: int
    late_s: float
    share: float
    """Of the time, what the others waited."""
    group: str
    number: int


def slowness(evidence: Evidence) -> Slowness | None:
    """The one rank that keeps the job waiting. None if ranks take turns, or nobody waits for long."""
    found = [
        slow
        for group, numbers in collectives(evidence)
        if len(group.ranks) > 1 and (slow := _of_group(group, _times(numbers))) is not None
    ]
    return max(found, key=lambda it: it.share, default=None)


def _times(numbers: Numbers) -> dict[int, dict[int, float]]:
    return {
        number: {rank.rank: call.called_at for rank, call in calls if call.called_at is not None}
        for number, calls in numbers.items()
    }


def _of_group(group: Group, times: dict[int, dict[int, float]]) -> Slowness | None:
    whole = [(number, at) for number, at in sorted(times.items()) if len(at) == len(group.ranks)]
    # The first calls of a job come after unequal preparations.
    whole = whole[2:][-64:]
    if len(whole) < _LEAST_CALLS:
        return None
    last: Counter[int] = Counter()
    late: dict[int, float] = defaultdict(float)
    for _, at in whole:
        slowest = max(at, key=lambda it: at[it])
        last[slowest] += 1
        late[slowest] += at[slowest] - sorted(at.values())[-2]
    rank, count = last.most_common(1)[0]
    span = max(whole[-1][1].values()) - min(whole[0][1].values())
    share = late[rank] / span if span > 0 else 0.0
    mean = late[rank] / count
    if count < _LAST_SHARE * len(whole) or share < _WAIT_SHARE or mean < _LEAST_LATE_S:
        return None
    return Slowness(rank, count, len(whole), mean, min(1.0, share), group.name, whole[-1][0])
