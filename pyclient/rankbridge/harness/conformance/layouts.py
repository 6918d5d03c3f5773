"""Groups, roots, shapes and parts of different sizes, on one dtype."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from rankbridge.harness.conformance.probe import SIZE, Json, Probe, probe, right, seeded
from rankbridge.harness.conformance.values import rooted, scattered, scattering

_GROUPS = ([0, 1, 2, 3], [2, 0, 3], [3, 1], [2])
_SHAPES: tuple[tuple[str, list[int]], ...] = (
    ("a number", []),
    ("no elements", [0, 3]),
    ("one element", [1]),
    ("odd sizes", [5, 7]),
    ("1 MiB", [512, 512]),
)


def layouts() -> Iterator[Probe]:
    """Gives all of them."""
    for ranks in _GROUPS:
        yield from _in_group(ranks)
    for what, shape in _SHAPES:
        yield from _of_shape(what, shape)
    yield from _unequal()
    yield from _messages()


def _in_group(ranks: Sequence[int]) -> Iterator[Probe]:
    roots = range(len(ranks))
    common: Json = {
        "dtype": "float32",
        "what": f"in a group of ranks {list(ranks)}",
        "groups": {"g": ranks},
    }
    x = {"x": seeded("float32", len(ranks), 2)}
    with_root: dict[str, Json] = {"broadcast": {}, "gather": {"dim": 0}, "reduce": {"op": "sum"}}
    for operation, words in with_root.items():
        steps = [rooted(operation, root, group="g", **words) for root in roots]
        yield probe("groups", operation, steps, op=words.get("op", ""), tensors=x, **common)
    steps = [scattered(ranks, root, group="g") for root in roots]
    yield probe("groups", "scatter", steps, tensors=scattering("float32", len(ranks)), **common)
    others: dict[str, Json] = {
        "all_gather": {"dim": 0},
        "all_to_all": {"dim": 0},
        "all_reduce": {"op": "sum"},
        "reduce_scatter": {"op": "sum", "dim": 0},
    }
    for operation, words in others.items():
        step = right(operation, of="x", group="g", **words)
        yield probe("groups", operation, [step], op=words.get("op", ""), tensors=x, **common)


def _of_shape(what: str, shape: list[int]) -> Iterator[Probe]:
    common: Json = {"dtype": "float32", "what": what, "tensors": {"x": seeded("float32", *shape)}}
    yield probe("shapes", "broadcast", [rooted("broadcast", 3)], **common)
    yield probe("shapes", "all_reduce", [right("all_reduce", of="x", op="sum")], op="sum", **common)
    yield probe("shapes", "reduce", [rooted("reduce", 2, op="sum")], op="sum", **common)
    if shape:
        yield probe("shapes", "all_gather", [right("all_gather", of="x", dim=0)], **common)
        yield probe("shapes", "gather", [rooted("gather", 2, dim=-1)], **common)


def _unequal() -> Iterator[Probe]:
    what = "parts of different sizes"
    rows = {"x": seeded("float32", "$rank", 3)}
    common: Json = {"dtype": "float32", "what": what}
    words: Json = {"dim": 0, "ragged": True}
    yield probe("shapes", "all_gather", [right("all_gather", of="x", **words)], tensors=rows, **common)
    yield probe("shapes", "gather", [rooted("gather", 1, **words)], tensors=rows, **common)
    sizes = [3, 0, 1, 4]
    whole = {"x": seeded("float32", sum(sizes), 2)}
    scatter = right("reduce_scatter", of="x", op="sum", dim=0, sizes=sizes)
    yield probe("shapes", "reduce_scatter", [scatter], op="sum", tensors=whole, **common)
    # Rank r gets r rows from rank 1.
    parts = {"whole": seeded("float32", sum(range(SIZE)), 2), "part": seeded("float32", "$rank", 2)}
    divide = scattered(range(SIZE), 1, sizes=list(range(SIZE)))
    yield probe("shapes", "scatter", [divide], tensors=parts, **common)
    matrix = [[3, 0, 1, 4], [0, 0, 8, 0], [2, 2, 2, 2], [1, 5, 1, 1]]
    exchange = right("all_to_all", of="x", dim=0, sizes=matrix)
    yield probe("shapes", "all_to_all", [exchange], tensors=whole, **common)


def _messages() -> Iterator[Probe]:
    def call(rank: int, name: str, peer: int, tag: int) -> dict[str, Any]:
        if name == "send":
            return {"rank": rank, "call": name, "of": "x", "dst_rank_in_group": peer, "tag": tag}
        return {"rank": rank, "call": name, "src_rank_in_group": peer, "tag": tag}

    ring = [
        call(rank, name, (rank + step) % SIZE, 0)
        for rank in range(SIZE)
        for name, step in (("send", 1), ("recv", -1))
    ]
    crossed = [call(0, "send", 1, 1), call(0, "send", 1, 2), call(1, "recv", 0, 2), call(1, "recv", 0, 1)]
    for what, calls in (("in a ring", ring), ("received in another order", crossed)):
        steps: list[Json] = [
            {"name": "all", "wait": False, "each": calls},
            {"await": "all", "expect": {"ok": True}},
        ]
        x = {"x": seeded("float32", 5)}
        yield probe("groups", "send", steps, dtype="float32", what=what, tensors=x, operations=["recv"])
