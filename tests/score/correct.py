"""Correct cases by class, of which nothing may be said."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

from tests.score.faulty import CALLS, Make, call, members_of
from tests.score.labelled import LONG_MS, SIZE, Json


def agreed(rng: random.Random) -> dict[str, Any]:
    """All ask for the same."""
    members = members_of(rng)
    return {"step": {**call(rng), "group": "g"}, "groups": {"g": members}, "group": "g"}


def late(rng: random.Random) -> dict[str, Any]:
    """Ranks that come late, within the timeout."""
    delays = {str(rank): rng.randrange(1, 200) for rank in rng.sample(range(SIZE), rng.choice([1, 2, 3]))}
    return {"step": {**call(rng), "timeout_ms": LONG_MS, "fault": {"delay_ms": delays}}, "groups": {}}


def crossed_at_once(rng: random.Random) -> dict[str, Any]:
    """Two groups in opposite orders, by calls that do not wait for each other."""
    name = rng.choice(sorted(CALLS))
    each = [
        {"rank": rank, "call": name, "of": "x", **CALLS[name], "group": group}
        for rank in range(SIZE)
        for group in (("left", "right") if rng.random() < 0.5 else ("right", "left"))
    ]
    groups = {"left": list(range(SIZE)), "right": rng.sample(range(SIZE), SIZE)}
    return {"step": {"each": each, "wait": False}, "groups": groups}


def disjoint(rng: random.Random) -> dict[str, Any]:
    """Different operations in groups without common members."""
    ranks = rng.sample(range(SIZE), SIZE)
    groups = {"one": ranks[:2], "other": ranks[2:]}
    each: list[Json] = []
    for group, members in groups.items():
        name = rng.choice(sorted(CALLS))
        each += [{"rank": it, "call": name, "of": "x", **CALLS[name], "group": group} for it in members]
    return {"step": {"each": each}, "groups": groups}


def ragged(rng: random.Random) -> dict[str, Any]:
    """Sizes that may differ: of a ragged gather."""
    members = members_of(rng)
    others = {str(rank): {"of": "long"} for rank in rng.sample(members, 2)}
    step = {"call": "all_gather", "of": "x", "dim": 0, "ragged": True, "group": "g", "but": others}
    return {"step": step, "groups": {"g": members}, "group": "g"}


def messages(rng: random.Random) -> dict[str, Any]:
    """Messages in a ring, sends and receives in any order."""
    each: list[Json] = []
    for rank in range(SIZE):
        calls: list[Json] = [
            {"rank": rank, "call": "send", "of": "x", "dst_rank_in_group": (rank + 1) % SIZE},
            {"rank": rank, "call": "recv", "src_rank_in_group": (rank - 1) % SIZE},
        ]
        each += rng.sample(calls, 2)
    return {"step": {"each": each, "wait": False}, "groups": {}}


CORRECT: Sequence[Make] = (agreed, late, crossed_at_once, disjoint, ragged, messages)
