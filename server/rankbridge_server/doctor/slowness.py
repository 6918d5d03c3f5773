"""A job that moves, in which one rank comes last to nearly every call, and makes the others wait most of the time."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass

from .evidence import Evidence

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
    times: dict[tuple[str, tuple[int, ...]], dict[int, dict[int, float]]] = {}
    for rank in evidence.ranks:
        members = {it.name: it.ranks for it in rank.groups}
        for call in rank.calls:
            if call.called_at is not None and not call.is_p2p and len(members.get(call.group, ())) > 1:
                key = (call.group, members[call.group])
                times.setdefault(key, defaultdict(dict))[call.number][rank.rank] = call.called_at
    found = [it for key, numbers in times.items() if (it := _of_group(key, numbers)) is not None]
    return max(found, key=lambda it: it.share, default=None)


def _of_group(key: tuple[str, tuple[int, ...]], numbers: dict[int, dict[int, float]]) -> Slowness | None:
    name, members = key
    whole = [(number, at) for number, at in sorted(numbers.items()) if len(at) == len(members)]
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
    return Slowness(rank, count, len(whole), mean, min(1.0, share), name, whole[-1][0])
