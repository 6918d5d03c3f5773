"""What cases are built of. Nothing here computes with torch."""

from __future__ import annotations

import base64
import math
import random
import struct
from collections.abc import Sequence
from typing import Any

RANKS = 4

ITEM_SIZES = {
    "float32": 4, "float64": 8, "float16": 2, "bfloat16": 2, "int8": 1, "int16": 2, "int32": 4, "int64": 8,
    "uint8": 1, "uint16": 2, "uint32": 4, "uint64": 8, "bool": 1, "complex32": 4, "complex64": 8, "complex128": 16,
    "float8_e4m3fn": 1, "float8_e5m2": 1, "float8_e4m3fnuz": 1, "float8_e5m2fnuz": 1, "float8_e8m0fnu": 1,
}  # fmt: skip
FLOATS = {"float32": "f", "float64": "d", "float16": "e"}
INTS = {
    "int8": "b", "uint8": "B", "int16": "h", "uint16": "H", "int32": "i", "uint32": "I", "int64": "q", "uint64": "Q",
}  # fmt: skip
COMPLEX = {"complex64": "f", "complex128": "d"}
REDUCIBLE = [*FLOATS, "bfloat16", *INTS, "bool", *COMPLEX]
NOT_REDUCIBLE = sorted(set(ITEM_SIZES) - set(REDUCIBLE))

Json = dict[str, Any]


def tensor(dtype: str, shape: Sequence[int], data: bytes) -> Json:
    """A tensor as cases have it."""
    assert len(data) == math.prod(shape) * ITEM_SIZES[dtype]
    return {"dtype": dtype, "shape": list(shape), "data": base64.b64encode(data).decode()}


def noise(seed: str, dtype: str, shape: Sequence[int]) -> bytes:
    """Random elements, NaNs and infinities among them; of bool 0 or 1."""
    generator = random.Random(seed)
    count = math.prod(shape) * ITEM_SIZES[dtype]
    return bytes(generator.randrange(2 if dtype == "bool" else 256) for _ in range(count))


def encode(dtype: str, values: Sequence[int]) -> bytes:
    """Small whole numbers as elements."""
    if dtype in FLOATS or dtype in INTS:
        return struct.pack(f"<{len(values)}{(FLOATS | INTS)[dtype]}", *values)
    if dtype == "bfloat16":
        return b"".join(struct.pack("<f", value)[2:] for value in values)
    if dtype == "bool":
        return bytes(value != 0 for value in values)
    return b"".join(struct.pack(f"<2{COMPLEX[dtype]}", value, -value) for value in values)


def case(name: str, operation: str, **fields: Any) -> Json:
    """A case with what it leaves out."""
    return {
        "case": name,
        "ranks": RANKS,
        "group": None,
        "operation": operation,
        "arguments": {},
        "inputs": None,
        **fields,
    }


def concatenate(parts: Sequence[bytes], dtype: str, shape: Sequence[int], dim: int) -> bytes:
    """Row-major tensors of `shape`, side by side along `dim`."""
    rows = math.prod(shape[:dim])
    width = math.prod(shape[dim:]) * ITEM_SIZES[dtype]
    return b"".join(part[row * width : (row + 1) * width] for row in range(rows) for part in parts)


def resized(shape: Sequence[int], dim: int, size: int) -> list[int]:
    """A shape with another size."""
    return [*shape[:dim], size, *shape[dim + 1 :]]


def divide(data: bytes, dtype: str, shape: Sequence[int], dim: int, sizes: Sequence[int]) -> list[Json]:
    """Parts of a row-major tensor of `shape`, of `sizes` along `dim`."""
    assert sum(sizes) == shape[dim]
    stride = math.prod(shape[dim + 1 :]) * ITEM_SIZES[dtype]
    rows = [data[row * shape[dim] * stride :][: shape[dim] * stride] for row in range(math.prod(shape[:dim]))]
    starts = [sum(sizes[:place]) * stride for place in range(len(sizes))]
    return [
        tensor(dtype, resized(shape, dim, size), b"".join(row[start:][: size * stride] for row in rows))
        for start, size in zip(starts, sizes, strict=True)
    ]


def stack(tensors: Sequence[Json], dim: int) -> Json:
    """Tensors, concatenated along `dim`."""
    dtype, shape = tensors[0]["dtype"], tensors[0]["shape"]
    parts = [base64.b64decode(it["data"]) for it in tensors]
    widths = [math.prod(it["shape"][dim:]) * ITEM_SIZES[dtype] for it in tensors]
    data = b"".join(
        part[row * width :][:width]
        for row in range(math.prod(shape[:dim]))
        for part, width in zip(parts, widths, strict=True)
    )
    return tensor(dtype, resized(shape, dim, sum(it["shape"][dim] for it in tensors)), data)
