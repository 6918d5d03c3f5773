"""What of a long record matters: the newest calls, and those around the first at which ranks differ."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace

from .contracts import mismatches
from .evidence import Call, Evidence, RankEvidence
from .order import swaps

NEWEST = 64
"""Calls of each group."""
_AROUND = 8


def focus(evidence: Evidence) -> Evidence:
    """The same evidence with fewer calls, on which the verdict is the same."""
    places: dict[str, set[int]] = defaultdict(set)
    for found in mismatches(evidence):
        places[found.group.name].add(found.number)
    swap = swaps(evidence)
    if swap is not None:
        places[swap.group.name].add(swap.number)
    kept = {
        name: {near for it in at for near in range(it - _AROUND, it + _AROUND + 1)}
        for name, at in places.items()
    }
    return replace(evidence, ranks=tuple(replace(it, calls=_kept(it, kept)) for it in evidence.ranks))


def _kept(rank: RankEvidence, places: dict[str, set[int]]) -> tuple[Call, ...]:
    left: dict[str, int] = defaultdict(lambda: NEWEST)
    calls = []
    for call in reversed(rank.calls):
        left[call.group] -= 1
        if left[call.group] >= 0 or (not call.is_p2p and call.number in places.get(call.group, ())):
            calls.append(call)
    return tuple(reversed(calls))
