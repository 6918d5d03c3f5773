"""Calls of all ranks, side by side: those of one group with one number are one collective."""

from __future__ import annotations

from collections import defaultdict

from .evidence import Call, Evidence, Group, RankEvidence

Numbers = dict[int, list[tuple[RankEvidence, Call]]]
"""What each member asked for, by number."""


def collectives(evidence: Evidence) -> list[tuple[Group, Numbers]]:
    """The collectives of each group. A group is another where it has other members."""
    found: dict[tuple[str, tuple[int, ...]], tuple[Group, Numbers]] = {}
    for rank in evidence.ranks:
        # A key with a thousand members is hashed once for each rank, and not for each call.
        mine = {
            it.name: found.setdefault((it.name, it.ranks), (it, defaultdict(list)))[1] for it in rank.groups
        }
        for call in rank.calls:
            numbers = mine.get(call.group)
            if numbers is not None and not call.is_p2p:
                numbers[call.number].append((rank, call))
    return list(found.values())
