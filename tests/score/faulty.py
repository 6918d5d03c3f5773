"""Faulty cases by class: each makes one from random numbers."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Any

from tests.score.labelled import LONG_MS, SHORT_MS, SIZE, Json, Truth, disagreement, missing

CALLS: dict[str, Json] = {
    "all_reduce": {"op": "sum"},
    "reduce": {"op": "sum", "dst_rank_in_group": 0},
    "broadcast": {"src_rank_in_group": 0},
    "gather": {"dst_rank_in_group": 0, "dim": 0},
    "all_gather": {"dim": 0},
    "reduce_scatter": {"op": "sum", "dim": 0},
    "all_to_all": {"dim": 0},
}
TENSORS: dict[str, Json] = {
    name: {"dtype": dtype, "shape": shape, "fill": {"seed": 1}}
    for name, dtype, shape in (
        ("x", "float32", [12, 12]),
        ("wide", "float32", [12, 24]),
        ("long", "float32", [24, 12]),
        ("double", "float64", [12, 12]),
        ("ints", "int32", [12, 12]),
    )
}
"""Of every rank."""

Make = Callable[[random.Random], dict[str, Any]]


def members_of(rng: random.Random) -> list[int]:
    """Three or four ranks, in any order."""
    return rng.sample(range(SIZE), rng.choice([3, 4, 4]))


def call(rng: random.Random, *, having: str = "") -> Json:
    """An operation on x, with an argument of this name."""
    names = [name for name, it in CALLS.items() if not having or having in it]
    name = rng.choice(names)
    return {"call": name, "of": "x", **CALLS[name]}


def some(rng: random.Random, members: Sequence[int]) -> list[int]:
    """One or two members, and not all."""
    return rng.sample(list(members), rng.choice([1, 1, 2]))


def _differing(rng: random.Random, base: Json, other: Json) -> dict[str, Any]:
    members = members_of(rng)
    odd = some(rng, members)
    step = {**base, "group": "g", "but": {str(rank): other for rank in odd}, "timeout_ms": LONG_MS}
    return {"step": step, "truth": disagreement(members, odd), "groups": {"g": members}, "group": "g"}


def shape(rng: random.Random) -> dict[str, Any]:
    """Tensors of other shapes."""
    return _differing(rng, call(rng), {"of": rng.choice(["wide", "long"])})


def dtype(rng: random.Random) -> dict[str, Any]:
    """Tensors of another dtype."""
    return _differing(rng, call(rng), {"of": rng.choice(["double", "ints"])})


def op(rng: random.Random) -> dict[str, Any]:
    """Another reduction."""
    return _differing(rng, call(rng, having="op"), {"op": rng.choice(["max", "min", "product"])})


def root(rng: random.Random) -> dict[str, Any]:
    """Another source or destination."""
    name = rng.choice(["src_rank_in_group", "dst_rank_in_group"])
    return _differing(rng, call(rng, having=name), {name: rng.choice([1, 2])})


def dim(rng: random.Random) -> dict[str, Any]:
    """Another dimension."""
    return _differing(rng, call(rng, having="dim"), {"dim": 1})


def operation(rng: random.Random) -> dict[str, Any]:
    """Another operation."""
    members = members_of(rng)
    odd = some(rng, members)
    usual, other = rng.sample(sorted(CALLS), 2)
    each = [_one(rank, other if rank in odd else usual, "g") for rank in members]
    step = {"each": each, "timeout_ms": LONG_MS}
    return {"step": step, "truth": disagreement(members, odd), "groups": {"g": members}, "group": "g"}


def sizes(rng: random.Random) -> dict[str, Any]:
    """Another idea of the members' parts."""
    members = members_of(rng)
    odd = some(rng, members)
    equal = [12 // len(members)] * len(members)
    other = [equal[0] - 1, equal[1] + 1, *equal[2:]]
    base = {"call": "reduce_scatter", "of": "x", **CALLS["reduce_scatter"], "sizes": equal, "group": "g"}
    step = {**base, "but": {str(rank): {"sizes": other} for rank in odd}, "timeout_ms": LONG_MS}
    return {"step": step, "truth": disagreement(members, odd), "groups": {"g": members}, "group": "g"}


def swapped(rng: random.Random) -> dict[str, Any]:
    """Two calls in another order."""
    members = members_of(rng)
    odd = some(rng, members)
    first, second = rng.sample(sorted(CALLS), 2)
    each = [
        _one(rank, name, "g")
        for rank in members
        for name in ((second, first) if rank in odd else (first, second))
    ]
    step = {"each": each, "timeout_ms": LONG_MS}
    return {"step": step, "truth": disagreement(members, odd), "groups": {"g": members}, "group": "g"}


def absent(rng: random.Random) -> dict[str, Any]:
    """Ranks that do not come."""
    members = members_of(rng)
    gone = some(rng, members)
    step = {**call(rng), "group": "g", "absent": gone, "timeout_ms": SHORT_MS}
    truth = missing({rank: gone for rank in members if rank not in gone})
    return {"step": step, "truth": truth, "groups": {"g": members}, "group": "g"}


def again(rng: random.Random) -> dict[str, Any]:
    """A call once more than the others."""
    members = members_of(rng)
    odd = rng.choice(members)
    name = rng.choice(sorted(CALLS))
    each = [_one(rank, name, "g") for rank in members for _ in range(2 if rank == odd else 1)]
    truth = missing({odd: set(members) - {odd}})
    return {
        "step": {"each": each, "timeout_ms": SHORT_MS},
        "truth": truth,
        "groups": {"g": members},
        "group": "g",
    }


def crossed(rng: random.Random) -> dict[str, Any]:
    """Two groups, entered in opposite orders: each rank waits in its first."""
    odd = some(rng, range(SIZE))
    others = [rank for rank in range(SIZE) if rank not in odd]
    groups = {"left": rng.sample(range(SIZE), SIZE), "right": rng.sample(range(SIZE), SIZE)}
    name = rng.choice(sorted(CALLS))
    # A second call would come when the first ones' timeouts do, and may or may not be there in time.
    each = [_one(rank, name, "right" if rank in odd else "left") for rank in range(SIZE)]
    truth = missing({rank: others if rank in odd else odd for rank in range(SIZE)})
    return {"step": {"each": each, "timeout_ms": SHORT_MS}, "truth": truth, "groups": groups}


def refused(rng: random.Random) -> dict[str, Any]:
    """A rank's own call is refused."""
    members = members_of(rng)
    odd = rng.choice(members)
    base = call(rng, having=(name := rng.choice(["src_rank_in_group", "dst_rank_in_group"])))
    step = {**base, "group": "g", "but": {str(odd): {name: 9}}, "timeout_ms": LONG_MS}
    others = {rank: frozenset({odd}) for rank in members if rank != odd}
    truth = Truth(dict.fromkeys(members, "RANK_OUT_OF_RANGE"), others)
    return {"step": step, "truth": truth, "groups": {"g": members}, "group": "g"}


def unmatched(rng: random.Random) -> dict[str, Any]:
    """A send or a receive alone, or with another tag."""
    source, target = rng.sample(range(SIZE), 2)
    send = {"rank": source, "call": "send", "of": "x", "dst_rank_in_group": target, "tag": 1}
    recv = {"rank": target, "call": "recv", "src_rank_in_group": source, "tag": 2}
    each, waits = rng.choice(
        [
            ([send], {source: {target}}),
            ([recv], {target: {source}}),
            ([send, recv], {source: {target}, target: {source}}),
        ]
    )
    return {"step": {"each": each, "timeout_ms": SHORT_MS}, "truth": missing(waits), "groups": {}}


def from_anyone(rng: random.Random) -> dict[str, Any]:
    """A receive from anyone, with no sender."""
    members = members_of(rng)
    target = rng.choice(members)
    each = [{"rank": target, "call": "recv", "group": "g"}]
    truth = missing({target: set(members) - {target}})
    return {
        "step": {"each": each, "timeout_ms": SHORT_MS},
        "truth": truth,
        "groups": {"g": members},
        "group": "g",
    }


def unexpected(rng: random.Random) -> dict[str, Any]:
    """A receive into a tensor of another dtype or shape."""
    source, target = rng.sample(range(SIZE), 2)
    each = [
        {"rank": source, "call": "send", "of": "x", "dst_rank_in_group": target},
        {
            "rank": target,
            "call": "recv",
            "into": rng.choice(["wide", "double"]),
            "src_rank_in_group": source,
        },
    ]
    truth = disagreement([source, target], [target])
    return {"step": {"each": each, "timeout_ms": LONG_MS}, "truth": truth, "groups": {}}


def killed(rng: random.Random) -> dict[str, Any]:
    """A rank is killed while others wait."""
    return _struck(rng, "kill")


def stopped(rng: random.Random) -> dict[str, Any]:
    """A rank stops while others wait."""
    return _struck(rng, "stop")


def _struck(rng: random.Random, how: str) -> dict[str, Any]:
    victim, away = rng.sample(range(SIZE), 2)
    fault = {how: [victim], "after_ms": rng.randrange(50, 150)}
    step = {**call(rng), "absent": [away], "timeout_ms": LONG_MS, "fault": fault}
    others = {rank: frozenset({victim}) for rank in range(SIZE) if rank not in (victim, away)}
    truth = Truth(dict.fromkeys(others, "PEER_LOST"), others)
    return {"step": step, "truth": truth, "groups": {}, "victims": frozenset({victim})}


def _one(rank: int, name: str, group: str) -> Json:
    return {"rank": rank, "call": name, "of": "x", **CALLS[name], "group": group}


ANYWHERE: Sequence[Make] = (
    *(shape, dtype, op, root, dim, operation, sizes, swapped),
    *(absent, again, crossed, refused, unmatched, from_anyone, unexpected),
)
ON_PROCESSES: Sequence[Make] = (killed, stopped)
