"""Parts of equal and of given sizes, along every dimension."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from tests.contract.families.build import RANKS, Json, case, divide, encode, noise, resized, stack, tensor

UNEVEN = [3, 0, 1, 4]
"""Sizes of the members' parts."""

ROWS = [[1, 2, 0, 3], [0, 0, 0, 0], [4, 1, 1, 0], [0, 0, 5, 1]]
"""What each member sends each: one sends nothing, and the last gets nothing from two."""


def sizes() -> Iterator[Json]:
    """What is divided and what is put together."""
    yield from reduce_scatters()
    yield from scatters()
    yield from gathers()
    yield from all_to_alls()


def reduce_scatters() -> Iterator[Json]:
    """Along every dimension, also of more than two, where vLLM's own divides in the wrong order."""
    for rank_of_tensor in (1, 2, 3, 4):
        for dim in range(rank_of_tensor):
            shape = resized([2, 1, 3, 2][:rank_of_tensor], dim, sum(UNEVEN))
            count = math.prod(shape)
            inputs = [
                tensor("int32", shape, encode("int32", [(rank + 1) * i for i in range(count)]))
                for rank in range(RANKS)
            ]
            total = encode("int32", [10 * i for i in range(count)])
            arguments = {"op": "sum", "dim": dim - rank_of_tensor}
            yield case(
                f"reduce_scatter of {shape} along {dim}",
                "reduce_scatter",
                arguments=arguments,
                inputs=inputs,
                results=divide(total, "int32", shape, dim, [2] * RANKS),
            )
            yield case(
                f"reduce_scatter of {shape} along {dim} in {UNEVEN}",
                "reduce_scatter",
                arguments={**arguments, "sizes": UNEVEN},
                inputs=inputs,
                results=divide(total, "int32", shape, dim, UNEVEN),
            )
    empty = tensor("float32", [2, 0], b"")
    for given in ({}, {"sizes": [0, 0, 0, 0]}):
        yield case(
            f"reduce_scatter of nothing{' in sizes' if given else ''}",
            "reduce_scatter",
            arguments={"dim": 1, **given},
            inputs=[empty] * RANKS,
            results=[empty] * RANKS,
        )


def scatters() -> Iterator[Json]:
    """From a member whose own part has elements, and from one whose part has none; and parts that all have none."""
    for dtype, shape, dim, src in (
        ("bool", [1], 0, 0),
        ("int16", [2, 3], 1, 1),
        ("complex128", [2, 3, 2], 1, 3),
    ):
        whole = resized(shape, dim, sum(UNEVEN))
        data = noise(f"scatter/{dtype}/{whole}/{dim}", dtype, whole)
        parts = divide(data, dtype, whole, dim, UNEVEN)
        yield case(
            f"scatter of {UNEVEN} {dtype} along {dim} of {len(shape)} from rank {src}",
            "scatter",
            arguments={"src_rank_in_group": src, "dim": dim - len(shape), "sizes": UNEVEN},
            inputs=[*parts[:src], tensor(dtype, whole, data), *parts[src + 1 :]],
            results=parts,
        )
    empty = tensor("float32", [0, 2], b"")
    yield case(
        "scatter of nothing in sizes",
        "scatter",
        arguments={"sizes": [0] * RANKS},
        inputs=[empty] * RANKS,
        results=[empty] * RANKS,
    )


def gathers() -> Iterator[Json]:
    """Of tensors that differ along the dimension, also in dtypes that are bytes to the backend."""
    for dtype in ("int16", "float8_e5m2", "complex128", "bool"):
        for rank_of_tensor in (1, 2, 3):
            for dim in range(rank_of_tensor):
                shape = resized([2, 3, 2][:rank_of_tensor], dim, sum(UNEVEN))
                data = noise(f"{dtype}/{shape}/{dim}", dtype, shape)
                whole = tensor(dtype, shape, data)
                inputs = divide(data, dtype, shape, dim, UNEVEN)
                yield case(
                    f"all_gather of {UNEVEN} {dtype} along {dim} of {rank_of_tensor}",
                    "all_gather",
                    arguments={"dim": dim, "sizes": UNEVEN},
                    inputs=inputs,
                    results=[whole] * RANKS,
                )
                yield case(
                    f"gather of {UNEVEN} {dtype} along {dim} of {rank_of_tensor}",
                    "gather",
                    arguments={"dst_rank_in_group": 1, "dim": dim - rank_of_tensor, "sizes": UNEVEN},
                    inputs=inputs,
                    results=[None, whole, None, None],
                )
    one = tensor("int8", [1, 2], bytes([1, 2]))
    for size, parts in ((4, [one] * RANKS), (0, [tensor("int8", [0, 2], b"")] * RANKS)):
        yield case(
            f"all_gather of sizes that are all {size // RANKS}",
            "all_gather",
            arguments={"dim": 0, "sizes": [size // RANKS] * RANKS},
            inputs=parts,
            results=[tensor("int8", [size, 2], bytes([1, 2] * size))] * RANKS,
        )


def all_to_alls() -> Iterator[Json]:
    """As one call of the gang, and as a call of each rank with its own sizes."""
    for dtype, shape in (("float64", [1]), ("uint16", [2, 3]), ("bfloat16", [2, 1, 3])):
        for dim in range(len(shape)):
            inputs, results = exchanged(dtype, shape, dim, ROWS)
            name = f"all_to_all of {dtype} along {dim} of {len(shape)}"
            yield case(
                name, "all_to_all", arguments={"dim": dim, "sizes": ROWS}, inputs=inputs, results=results
            )
            yield case(
                f"{name}, each by itself",
                "all_to_all",
                arguments_by_rank=by_rank(ROWS, dim - len(shape)),
                inputs=inputs,
                results=results,
            )
            equal = [[2] * RANKS] * RANKS
            inputs, results = exchanged(dtype, shape, dim, equal)
            yield case(
                f"{name} in equal parts", "all_to_all", arguments={"dim": dim}, inputs=inputs, results=results
            )
    no_sizes = [[0] * RANKS] * RANKS
    inputs, results = exchanged("int8", [1, 2], 0, no_sizes)
    yield case(
        "all_to_all of nothing", "all_to_all", arguments={"sizes": no_sizes}, inputs=inputs, results=results
    )
    inputs, results = exchanged("int8", [1, 0], 0, ROWS)
    yield case(
        "all_to_all of rows of nothing",
        "all_to_all",
        arguments={"sizes": ROWS},
        inputs=inputs,
        results=results,
    )


def exchanged(
    dtype: str, shape: Sequence[int], dim: int, rows: Sequence[Sequence[int]]
) -> tuple[list[Json], list[Json]]:
    """All members' tensors, and what they get when each sends each what `rows` say."""
    shapes = [resized(shape, dim, sum(row)) for row in rows]
    data = [noise(f"{dtype}/{dim}/{rank}", dtype, it) for rank, it in enumerate(shapes)]
    inputs = [tensor(dtype, *it) for it in zip(shapes, data, strict=True)]
    parts = [divide(it, dtype, own, dim, row) for it, own, row in zip(data, shapes, rows, strict=True)]
    return inputs, [stack([row[member] for row in parts], dim) for member in range(len(rows))]


def by_rank(rows: Sequence[Sequence[int]], dim: int) -> list[Json]:
    """Each rank's own arguments."""
    return [
        {"dim": dim, "input_sizes": row, "output_sizes": [other[rank] for other in rows]}
        for rank, row in enumerate(rows)
    ]
