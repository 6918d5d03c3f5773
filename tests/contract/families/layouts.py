"""Gathers into stacks and lists, of tensors that differ, and scans."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tests.contract.families.build import RANKS, Json, case, encode, noise, resized, stack, tensor


def layouts() -> Iterator[Json]:
    """What a gather can make of its members' tensors, and what a scan does."""
    yield from stacks()
    yield from lists()
    yield from ragged()
    yield from scans()


def stacks() -> Iterator[Json]:
    """A new dimension at every place."""
    for dtype, shape in (("int16", []), ("float32", [2]), ("float8_e4m3fn", [2, 3])):
        inputs = noisy(dtype, [shape] * RANKS)
        for dim in range(len(shape) + 1):
            parts = [{**it, "shape": [*shape[:dim], 1, *shape[dim:]]} for it in inputs]
            whole = stack(parts, dim)
            name = f"of {dtype}{shape} stacked at {dim}"
            yield case(
                f"all_gather {name}",
                "all_gather",
                arguments={"layout": "stacked", "dim": dim},
                inputs=inputs,
                results=[whole] * RANKS,
            )
            yield case(
                f"gather {name}",
                "gather",
                arguments={"layout": "stacked", "dim": dim - len(shape) - 1, "dst_rank_in_group": 2},
                inputs=inputs,
                results=[None, None, whole, None],
            )
    inputs = noisy("int8", [[2]] * RANKS)
    yield case(
        "all_gather stacked at the first without being told",
        "all_gather",
        arguments={"layout": "stacked"},
        inputs=inputs,
        results=[stack([{**it, "shape": [1, 2]} for it in inputs], 0)] * RANKS,
    )


def lists() -> Iterator[Json]:
    """A tensor for each member."""
    for dtype, shape in (("complex64", []), ("bfloat16", [3]), ("int64", [0, 2])):
        inputs = noisy(dtype, [shape] * RANKS)
        yield case(
            f"all_gather of {dtype}{shape} as a list",
            "all_gather",
            arguments={"layout": "list"},
            inputs=inputs,
            results=[inputs] * RANKS,
        )
        yield case(
            f"gather of {dtype}{shape} as a list",
            "gather",
            arguments={"layout": "list", "dst_rank_in_group": 3},
            inputs=inputs,
            results=[None, None, None, inputs],
        )


def ragged() -> Iterator[Json]:
    """Members tell each other their shapes."""
    for dtype, shape in (("float64", [1]), ("uint16", [2, 3])):
        for dim in range(len(shape)):
            inputs = noisy(dtype, [resized(shape, dim, size) for size in (3, 0, 1, 4)])
            whole = stack(inputs, dim)
            name = f"of ragged {dtype} along {dim} of {len(shape)}"
            yield case(
                f"all_gather {name}",
                "all_gather",
                arguments={"ragged": True, "dim": dim},
                inputs=inputs,
                results=[whole] * RANKS,
            )
            yield case(
                f"gather {name}",
                "gather",
                arguments={"ragged": True, "dim": dim, "dst_rank_in_group": 1},
                inputs=inputs,
                results=[None, whole, None, None],
            )
    inputs = noisy("float16", [[], [2, 1], [0, 7], [3]])
    yield case(
        "all_gather of ragged tensors of any shape as a list",
        "all_gather",
        arguments={"ragged": True, "layout": "list"},
        inputs=inputs,
        results=[inputs] * RANKS,
    )
    yield case(
        "all_gather of ragged tensors that do not go together",
        "all_gather",
        arguments={"ragged": True, "dim": 0},
        inputs=noisy("float16", [[1, 2], [2, 2], [2, 3], [1, 2]]),
        error="MISMATCH",
    )


def scans() -> Iterator[Json]:
    """Inclusive ones and exclusive ones."""
    for dtype in ("int32", "float32"):
        rows = [[(rank + 1) * i for i in range(3)] for rank in range(RANKS)]
        inputs = [tensor(dtype, [3], encode(dtype, row)) for row in rows]
        for exclusive in (False, True):
            sums = [
                [sum(column[: rank + (not exclusive)]) for column in zip(*rows, strict=True)]
                for rank in range(RANKS)
            ]
            yield case(
                f"scan of {dtype}{', exclusive' if exclusive else ''}",
                "scan",
                arguments={"op": "sum", "exclusive": exclusive},
                inputs=inputs,
                results=[tensor(dtype, [3], encode(dtype, row)) for row in sums],
            )
    inputs = [tensor("int8", [1], encode("int8", [it])) for it in (2, 5, 3, 9)]
    yield case(
        "scan of the largest",
        "scan",
        arguments={"op": "max"},
        inputs=inputs,
        results=[tensor("int8", [1], encode("int8", [it])) for it in (2, 5, 5, 9)],
    )


def noisy(dtype: str, shapes: Sequence[Sequence[int]]) -> list[Json]:
    """A tensor for each member."""
    return [
        tensor(dtype, shape, noise(f"{dtype}/{shape}/{rank}", dtype, shape))
        for rank, shape in enumerate(shapes)
    ]
