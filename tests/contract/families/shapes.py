"""Tensors of many shapes, empty ones among them."""

from __future__ import annotations

import math
from collections.abc import Iterator

from tests.contract.families.build import RANKS, Json, case, concatenate, encode, noise, tensor


def shapes() -> Iterator[Json]:
    """Concatenation along every dimension of many shapes, empty ones among them."""
    for shape in ([1], [5], [0], [2, 3], [3, 0, 2], [2, 1, 3, 2]):
        data = [noise(f"{shape}/{rank}", "int16", shape) for rank in range(RANKS)]
        inputs = [tensor("int16", shape, it) for it in data]
        for dim in range(len(shape)):
            joined_shape = [size * RANKS if at == dim else size for at, size in enumerate(shape)]
            joined = tensor("int16", joined_shape, concatenate(data, "int16", shape, dim))
            for spelled in (dim, dim - len(shape)):
                yield case(
                    f"all_gather of {shape} along {spelled}",
                    "all_gather",
                    arguments={"dim": spelled},
                    inputs=inputs,
                    results=[joined] * RANKS,
                )
            yield case(
                f"scatter to {shape} along {dim}",
                "scatter",
                arguments={"src_rank_in_group": 1, "dim": dim - len(shape)},
                inputs=[inputs[3], joined, inputs[2], inputs[0]],
                results=inputs,
            )
            yield case(
                f"gather of {shape} along {dim} to the last rank",
                "gather",
                arguments={"dst_rank_in_group": RANKS - 1, "dim": dim},
                inputs=inputs,
                results=[None] * (RANKS - 1) + [joined],
            )
    for shape in ([], [0], [2, 0]):
        values = [rank + 1 for rank in range(RANKS)]
        inputs = [tensor("float32", shape, encode("float32", [v] * math.prod(shape))) for v in values]
        total = tensor("float32", shape, encode("float32", [sum(values)] * math.prod(shape)))
        yield case(
            f"all_reduce of {shape}",
            "all_reduce",
            arguments={"op": "sum"},
            inputs=inputs,
            results=[total] * RANKS,
        )
        yield case(
            f"reduce of {shape}",
            "reduce",
            arguments={"op": "sum", "dst_rank_in_group": 2},
            inputs=inputs,
            results=[None, None, total, None],
        )
        arguments = {"src_rank_in_group": 3}
        yield case(
            f"broadcast of {shape}",
            "broadcast",
            arguments=arguments,
            inputs=inputs,
            results=[inputs[3]] * RANKS,
        )
