"""Who comes first: the order in which the ranks of a case enter."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from tests.score.labelled import SIZE, Json

TOGETHER = "All at once"
LEADER = "The leader first"
ANOTHER = "Another rank first"
LEADER_LAST = "The leader last"
ORDERS = (TOGETHER, LEADER, ANOTHER, LEADER_LAST)
"""In the order in which the cases of a class take turns."""


def first_comers(order: str, fields: Mapping[str, Any], rng: random.Random) -> frozenset[int]:
    """Gives the ranks that come before the others. None: all come at once.

    The leader is the first rank of the case's first group, or, if that does not call, the first rank that calls.
    """
    callers = _callers(fields)
    group: Sequence[int] = next(iter(fields["groups"].values()), range(SIZE))
    leader = group[0] if group[0] in callers else callers[0]
    others = [rank for rank in callers if rank != leader]
    if order == TOGETHER or not others:
        return frozenset()
    return frozenset({LEADER: [leader], ANOTHER: [rng.choice(others)], LEADER_LAST: others}[order])


def is_ordered(step: Json) -> bool:
    """Tells whether a step says by itself when each rank comes."""
    return "delay_ms" in step.get("fault", {})


def in_order(step: Json, first: frozenset[int]) -> Iterator[Json]:
    """Splits a step: the calls of those who come first, then those of the others, with the fault."""
    if not first:
        yield step
        return
    yield _only(_without_fault(step), first)
    yield _only(step, frozenset(range(SIZE)) - first)


def _callers(fields: Mapping[str, Any]) -> list[int]:
    step = fields["step"]
    if "each" in step:
        return list(dict.fromkeys(it["rank"] for it in step["each"]))
    members = fields["groups"].get(step.get("group"), range(SIZE))
    return [rank for rank in members if rank not in step.get("absent", ())]


def _without_fault(step: Json) -> Json:
    return {word: it for word, it in step.items() if word != "fault"}


def _only(step: Json, ranks: frozenset[int]) -> Json:
    if "each" in step:
        return {**step, "each": [it for it in step["each"] if it["rank"] in ranks]}
    absent = step.get("absent", ())
    return {**step, "absent": [rank for rank in range(SIZE) if rank not in ranks or rank in absent]}
