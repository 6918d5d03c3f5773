"""Moves of every dtype."""

from __future__ import annotations

from collections.abc import Iterator

from tests.contract.families.build import (
    ITEM_SIZES,
    RANKS,
    Json,
    case,
    concatenate,
    divide,
    noise,
    stack,
    tensor,
)


def moves() -> Iterator[Json]:
    """Each of them, of every dtype."""
    for dtype in ITEM_SIZES:
        shape = [2, 3]
        data = [noise(f"{dtype}/{rank}", dtype, shape) for rank in range(RANKS)]
        inputs = [tensor(dtype, shape, it) for it in data]
        for in_place in (False, True):
            yield case(
                f"broadcast {dtype}{' in place' if in_place else ''}",
                "broadcast",
                arguments={"src_rank_in_group": 2, "in_place": in_place},
                inputs=inputs,
                results=[inputs[2]] * RANKS,
            )
        joined = tensor(dtype, [8, 3], concatenate(data, dtype, shape, 0))
        yield case(
            f"scatter {dtype}",
            "scatter",
            arguments={"src_rank_in_group": 3, "dim": 0},
            inputs=[*inputs[1:], joined],
            results=inputs,
        )
        if dtype in ("float32", "int16", "bool", "complex128", "float8_e5m2"):
            yield all_to_all(dtype)
        yield case(
            f"gather {dtype}",
            "gather",
            arguments={"dst_rank_in_group": 1, "dim": 0},
            inputs=inputs,
            results=[None, joined, None, None],
        )
        joined = tensor(dtype, [2, 12], concatenate(data, dtype, shape, 1))
        yield case(
            f"all_gather {dtype}",
            "all_gather",
            arguments={"dim": -1},
            inputs=inputs,
            results=[joined] * RANKS,
        )


def all_to_all(dtype: str) -> Json:
    """Equal parts: the transpose."""
    shape = [RANKS, 2]
    data = [noise(f"{dtype}/{rank}/all", dtype, shape) for rank in range(RANKS)]
    parts = [divide(it, dtype, shape, 0, [1] * RANKS) for it in data]
    return case(
        f"all_to_all {dtype}",
        "all_to_all",
        inputs=[tensor(dtype, shape, it) for it in data],
        results=[stack([row[rank] for row in parts], 0) for rank in range(RANKS)],
    )
