"""Reductions of small tensors, bit by bit as Gloo makes them."""

from __future__ import annotations

import ctypes
import operator
from collections.abc import Callable, Sequence
from typing import Any

TYPES: dict[str, type[Any]] = {
    "torch.int8": ctypes.c_int8,
    "torch.uint8": ctypes.c_uint8,
    "torch.int32": ctypes.c_int32,
    "torch.int64": ctypes.c_int64,
    "torch.float32": ctypes.c_float,
    "torch.float64": ctypes.c_double,
}
"""By dtype, what an element is in C."""


def _min(a: Any, b: Any) -> Any:
    # As C++'s `std::min`, which has its own way with NaN and with zeros.
    return b if b < a else a


def _max(a: Any, b: Any) -> Any:
    return b if a < b else a


_OPS: dict[str, Callable[[Any, Any], Any]] = {
    "sum": operator.add,
    "product": operator.mul,
    "min": _min,
    "max": _max,
    "band": operator.and_,
    "bor": operator.or_,
    "bxor": operator.xor,
}
_BITWISE = ("band", "bor", "bxor")


def reduces(dtype: Any, op: str) -> bool:
    """Whether elements of torch's dtype are reduced by this op."""
    return op in _OPS and not (op in _BITWISE and dtype.is_floating_point)


def reduced(parts: Sequence[bytes], dtype: str, op: str) -> bytes:
    """The reduction of members' tensors, which have one size. `dtype`: "torch.float32".

    Gloo cuts a tensor into as many chunks as there are members. It adds to a chunk of number k in turn what the members
    k-1, k-2, ..., k have: where the sum is rounded, that is seen.
    """
    size, members = len(parts[0]), len(parts)
    element = TYPES[dtype]
    count = size // ctypes.sizeof(element)
    array, operation = element * count, _OPS[op]
    chunk = 2 * -(-count // (2 * members)) * ctypes.sizeof(element)
    chunks = range(-(-size // chunk))
    result: Any = None
    for turn in range(1, members + 1):
        rows = (parts[(at - turn) % members][at * chunk : (at + 1) * chunk] for at in chunks)
        row = array.from_buffer_copy(b"".join(rows))
        # An array rounds, or wraps, what it is given.
        result = row if result is None else array(*map(operation, row, result))
    return bytes(result)
