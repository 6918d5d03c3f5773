"""Reduce ops on dtypes: what they give, and what is refused."""

from __future__ import annotations

import base64
import functools
import math
import operator
import struct
from collections.abc import Callable, Iterator, Sequence

from tests.contract.families.build import (
    COMPLEX,
    INTS,
    ITEM_SIZES,
    NOT_REDUCIBLE,
    RANKS,
    Json,
    case,
    encode,
    tensor,
)

COMBINE: dict[str, Callable[[Sequence[int]], int]] = {
    "sum": sum,
    "product": math.prod,
    "min": min,
    "max": max,
    "avg": lambda values: sum(values) // len(values),
    "band": lambda values: functools.reduce(operator.and_, values),
    "bor": lambda values: functools.reduce(operator.or_, values),
    "bxor": lambda values: functools.reduce(operator.xor, values),
}
BITWISE = ("band", "bor", "bxor")
SOME_DTYPES = (
    "int8",
    "uint8",
    "int32",
    "int64",
    "bool",
    "int16",
    "uint64",
    "float32",
    "bfloat16",
    "complex64",
)
COLUMNS = [[1, 2, 3, 2], [0, 4, 0, 4], [1, 1, 1, 1]]
"""The elements that are reduced, by rank."""


def reductions() -> Iterator[Json]:
    """Every reduce op on every dtype at all members, and some of them at one."""
    for op in COMBINE:
        for dtype in ITEM_SIZES if op not in BITWISE else SOME_DTYPES:
            yield from all_reduces(op, dtype)
        for dtype in ("int64", "bool", "float16", "complex64", "int16", "float8_e5m2"):
            yield reduce(op, dtype)
            yield reduce_scatter(op, dtype)


def all_reduces(op: str, dtype: str) -> Iterator[Json]:
    """At all members."""
    name = f"all_reduce {op} {dtype}"
    if refused(op, dtype):
        yield refusal(name, "all_reduce", op, dtype)
        return
    inputs, result = whole_numbers(op, dtype)
    for in_place in (False, True):
        yield case(
            f"{name}{' in place' if in_place else ''}",
            "all_reduce",
            arguments={"op": op, "in_place": in_place},
            inputs=inputs,
            results=[result] * RANKS,
        )


def reduce(op: str, dtype: str) -> Json:
    """At one member, whose number is the dtype's and so differs from case to case."""
    name = f"reduce {op} {dtype}"
    if refused(op, dtype):
        return refusal(name, "reduce", op, dtype, dst_rank_in_group=1)
    inputs, result = whole_numbers(op, dtype)
    dst = len(dtype) % RANKS
    return case(
        name,
        "reduce",
        arguments={"op": op, "dst_rank_in_group": dst},
        inputs=inputs,
        results=[result if rank == dst else None for rank in range(RANKS)],
    )


def reduce_scatter(op: str, dtype: str) -> Json:
    """At all members, one element or none each."""
    name = f"reduce_scatter {op} {dtype}"
    if refused(op, dtype):
        return refusal(name, "reduce_scatter", op, dtype, sizes=[0, 1, 1, 1])
    inputs, whole = whole_numbers(op, dtype)
    data, size = base64.b64decode(whole["data"]), ITEM_SIZES[dtype]
    return case(
        name,
        "reduce_scatter",
        arguments={"op": op, "sizes": [1, 1, 0, 1]},
        inputs=inputs,
        results=[
            tensor(dtype, [len(part) // size], part)
            for part in (data[:size], data[size : 2 * size], b"", data[2 * size :])
        ],
    )


def refused(op: str, dtype: str) -> bool:
    """Whether nobody can do it, or it has no exact result."""
    return (
        dtype in NOT_REDUCIBLE
        or (op == "avg" and (dtype in INTS or dtype == "bool"))
        or (op not in ("sum", "avg", "product") and dtype in COMPLEX)
        or (op in BITWISE and dtype not in INTS and dtype != "bool")
    )


def refusal(name: str, operation: str, op: str, dtype: str, **arguments: int | list[int]) -> Json:
    """A case of a reduction that is refused."""
    inputs = [tensor(dtype, [3], bytes(3 * ITEM_SIZES[dtype]))] * RANKS
    return case(name, operation, arguments={"op": op, **arguments}, inputs=inputs, error="UNSUPPORTED_DTYPE")


def whole_numbers(op: str, dtype: str) -> tuple[list[Json], Json]:
    """All members' tensors, and their reduction."""
    inputs = [
        tensor(dtype, [3], encode(dtype, [column[rank] for column in COLUMNS])) for rank in range(RANKS)
    ]
    results = [reduced(op, dtype, column) for column in COLUMNS]
    if op == "product" and dtype in COMPLEX:
        # The first member's numbers are real: then no part of a product is a zero, of which engines differ in the sign.
        inputs[0] = tensor(dtype, [3], pairs(dtype, [(column[0], 0) for column in COLUMNS]))
        factor = (1 - 1j) ** (RANKS - 1)
        parts = [(round(it * factor.real), round(it * factor.imag)) for it in results]
        return inputs, tensor(dtype, [3], pairs(dtype, parts))
    return inputs, tensor(dtype, [3], encode(dtype, results))


def pairs(dtype: str, numbers: Sequence[tuple[int, int]]) -> bytes:
    """Complex numbers."""
    return b"".join(struct.pack(f"<2{COMPLEX[dtype]}", *it) for it in numbers)


def reduced(op: str, dtype: str, column: Sequence[int]) -> int:
    """One element of all members, combined."""
    if op == "avg" and sum(column) % len(column):
        raise ValueError(f"the average of {column} is not whole")
    return COMBINE[op]([int(bool(it)) for it in column] if dtype == "bool" else column)
