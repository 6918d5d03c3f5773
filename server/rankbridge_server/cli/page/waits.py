"""Who waits for whom, as a graph whose nodes are ranks that are alike."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any

from rankbridge.errors import intervals

MOST_NODES = 40


def graph(
    waits: Mapping[int, Iterable[int]], culprits: Collection[int] = (), cycle: Collection[int] = ()
) -> dict[str, Any]:
    """Nodes and edges. Ranks are one node if they wait for the same, the same wait for them, and none is to blame.

    `waits`: the ranks that each rank waits for. `cycle`: ranks that wait for each other in a circle.
    """
    targets = {rank: frozenset(those) - {rank} for rank, those in waits.items()}
    waiters: dict[int, set[int]] = {}
    for rank, those in targets.items():
        for it in those:
            waiters.setdefault(it, set()).add(rank)
    alike: dict[tuple[object, ...], list[int]] = {}
    for rank in sorted({*targets, *waiters, *culprits}):
        # A rank of a circle is a node of its own: one sees the way around.
        own = rank if rank in cycle else None
        key = (targets.get(rank, frozenset()), frozenset(waiters.get(rank, ())), rank in culprits, own)
        alike.setdefault(key, []).append(rank)
    nodes = list(alike.values())
    place = {rank: at for at, ranks in enumerate(nodes[:MOST_NODES]) for rank in ranks}
    edges = {
        (place[rank], place[it])
        for rank, those in targets.items()
        for it in those
        if rank in place and it in place
    }
    return {
        "nodes": [
            {
                "ranks": intervals(ranks),
                "count": len(ranks),
                "culprit": ranks[0] in culprits,
                "circle": ranks[0] in cycle,
            }
            for ranks in nodes[:MOST_NODES]
        ],
        "edges": sorted(it for it in edges if it[0] != it[1]),
        "more": max(0, len(nodes) - MOST_NODES),
    }
