"""Every operation on every dtype that it takes: the cells of the table."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from rankbridge._plan.dtypes import DTYPES
from rankbridge.harness.conformance.probe import SIZE, Json, Probe, probe, right, seeded

_FLOATS = ("float32", "float64", "float16", "bfloat16")
_INTS = ("int8", "int32", "int64", "uint8", "bool")
_COMPLEX = ("complex64", "complex128")
REDUCED: dict[str, Sequence[str]] = {
    "sum": (*_FLOATS, *_INTS, *_COMPLEX),
    "product": (*_FLOATS, *_INTS),
    "min": (*_FLOATS, *_INTS),
    "max": (*_FLOATS, *_INTS),
    "avg": (*_FLOATS, *_COMPLEX),
    "band": _INTS,
    "bor": _INTS,
    "bxor": _INTS,
}
"""The dtypes that each op has a result for, and Gloo reduces."""

_VALUE = {"of": "$rank", "list": [1, None, "two"]}


def values() -> Iterator[Probe]:
    """Gives all of them."""
    yield probe("values", "barrier", [right("barrier")])
    for dtype in DTYPES:
        yield from _moves(dtype)
    for op, dtypes in REDUCED.items():
        for dtype in dtypes:
            yield from _reductions(op, dtype)
    yield from _objects()


def _moves(dtype: str) -> Iterator[Probe]:
    x = {"x": seeded(dtype, SIZE, 3)}
    yield probe("values", "broadcast", [rooted("broadcast", 1)], dtype=dtype, tensors=x)
    yield probe("values", "gather", [rooted("gather", 1, dim=0)], dtype=dtype, tensors=x)
    yield probe("values", "all_gather", [right("all_gather", of="x", dim=0)], dtype=dtype, tensors=x)
    yield probe("values", "all_to_all", [right("all_to_all", of="x", dim=0)], dtype=dtype, tensors=x)
    yield probe(
        "values", "scatter", [scattered(range(SIZE), 1)], dtype=dtype, tensors=scattering(dtype, SIZE)
    )
    pairs = [
        {"rank": 0, "call": "send", "of": "x", "dst_rank_in_group": 2},
        {"rank": 2, "call": "recv", "src_rank_in_group": 0},
        {"rank": 1, "call": "send", "of": "x", "dst_rank_in_group": 3},
        {"rank": 3, "call": "recv", "src_rank_in_group": 1},
    ]
    yield probe(
        "values",
        "send",
        [{"each": pairs, "expect": {"ok": True}}],
        dtype=dtype,
        tensors=x,
        operations=["recv"],
    )


def _reductions(op: str, dtype: str) -> Iterator[Probe]:
    x = {"x": seeded(dtype, SIZE, 3)}
    common: Json = {"dtype": dtype, "op": op, "tensors": x}
    yield probe("values", "all_reduce", [right("all_reduce", of="x", op=op)], **common)
    if op in ("sum", "max"):
        yield probe("values", "reduce", [rooted("reduce", 1, op=op)], **common)
        yield probe("values", "reduce_scatter", [right("reduce_scatter", of="x", op=op, dim=0)], **common)


def _objects() -> Iterator[Probe]:
    steps: dict[str, Json] = {
        "broadcast_object": {"value": _VALUE, "src_rank_in_group": 1},
        "scatter_object": {"values": [it * "x" for it in range(SIZE)], "src_rank_in_group": 1},
        "gather_object": {"value": _VALUE, "dst_rank_in_group": 1},
        "all_gather_object": {"value": _VALUE},
        "all_reduce_value": {"value": "$rank", "op": "sum"},
    }
    for operation, words in steps.items():
        yield probe("values", operation, [right(operation, **words)])
    yield probe(
        "values",
        "broadcast_tensor_dict",
        [right("broadcast_tensor_dict", tensors={"one": "x", "other": "y"}, src_rank_in_group=1)],
        tensors={"x": seeded("float32", 3), "y": seeded("int64", 2, 2)},
    )


def rooted(operation: str, root: int, **words: Any) -> Json:
    """Gives a step with a source or a destination."""
    name = "src_rank_in_group" if operation == "broadcast" else "dst_rank_in_group"
    return right(operation, of="x", **{name: root}, **words)


def scattering(dtype: str, members: int) -> dict[str, Json]:
    """Gives the tensors of `scattered`."""
    return {"whole": seeded(dtype, 2 * members, 3), "part": seeded(dtype, 2, 3)}


def scattered(members: Sequence[int], root: int, **words: Any) -> Json:
    """Gives a scatter: the source has the whole, others have a tensor like their part."""
    others = {str(rank): {"of": "part"} for place, rank in enumerate(members) if place != root}
    return right("scatter", of="whole", src_rank_in_group=root, dim=0, but=others, **words)
