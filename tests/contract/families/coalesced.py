"""Several collectives as one operation: `calls`, each as a case, and `results`, for each what it gives alone."""

from __future__ import annotations

from collections.abc import Iterator

from tests.contract.families.build import RANKS, Json, case, encode, noise, stack, tensor
from tests.contract.families.layouts import noisy


def coalesced() -> Iterator[Json]:
    """Of one kind, of many, and with one that cannot be."""
    rows = [[rank + 1, 2 * rank] for rank in range(RANKS)]
    inputs = [tensor("int32", [2], encode("int32", row)) for row in rows]
    sums = tensor("int32", [2], encode("int32", [sum(column) for column in zip(*rows, strict=True)]))
    others = noisy("float8_e5m2", [[2, 1]] * RANKS)
    odd = noisy("uint8", [[3], [0], [1], [2]])
    summing = {"operation": "all_reduce", "arguments": {"op": "sum"}, "inputs": inputs}
    adding = {"operation": "all_reduce", "arguments": {"op": "sum", "in_place": True}, "inputs": inputs}
    gathering = {"operation": "all_gather", "arguments": {"dim": 0}, "inputs": others}
    listing = {
        "operation": "gather",
        "arguments": {"ragged": True, "layout": "list", "dst_rank_in_group": 2},
        "inputs": odd,
    }
    waiting: Json = {"operation": "barrier", "arguments": {}, "inputs": None}
    wrong = {
        "operation": "all_reduce",
        "arguments": {"op": "sum"},
        "inputs": [tensor("float8_e5m2", [1], noise(f"{rank}", "float8_e5m2", [1])) for rank in range(RANKS)],
    }
    yield case(
        "coalesce of two reductions",
        "coalesce",
        calls=[summing, adding],
        results=[[sums] * RANKS, [sums] * RANKS],
    )
    yield case(
        "coalesce of different collectives",
        "coalesce",
        calls=[gathering, waiting, summing, listing],
        results=[[stack(others, 0)] * RANKS, [None] * RANKS, [sums] * RANKS, [None, None, odd, None]],
    )
    yield case("coalesce of one", "coalesce", calls=[waiting], results=[[None] * RANKS])
    yield case(
        "coalesce with a dtype that is not reduced",
        "coalesce",
        calls=[adding, wrong],
        error="UNSUPPORTED_DTYPE",
    )
    mixed = {**wrong, "operation": "all_gather", "arguments": {"dim": 0}, "inputs": odd}
    yield case("coalesce with shapes that differ", "coalesce", calls=[adding, mixed], error="MISMATCH")
