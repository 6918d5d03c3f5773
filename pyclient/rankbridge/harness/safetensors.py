"""Files of the format safetensors: 8 bytes with the header's length, a header in JSON, and the elements."""

from __future__ import annotations

import json
import math
import os
import struct
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rankbridge._plan.dtypes import DTYPES
from rankbridge._plan.tensor import Tensor

SUFFIX = ".safetensors"
MOST_HEADER_BYTES = 16 << 20
"""Longest header that is read: of some hundred thousand tensors."""

_MOST_DIMENSIONS = 64
_LENGTH = struct.Struct("<Q")
_NAMES = {
    "BOOL": "bool",
    "U8": "uint8",
    "I8": "int8",
    "U16": "uint16",
    "I16": "int16",
    "U32": "uint32",
    "I32": "int32",
    "U64": "uint64",
    "I64": "int64",
    "F8_E4M3": "float8_e4m3fn",
    "F8_E5M2": "float8_e5m2",
    "F8_E8M0": "float8_e8m0fnu",
    "F16": "float16",
    "BF16": "bfloat16",
    "F32": "float32",
    "F64": "float64",
    "C64": "complex64",
}
_CODES = {name: code for code, name in _NAMES.items()}


def read(path: Path, name: str | None) -> Tensor:
    """Reads one tensor of a file, and nothing else of its elements.

    Args:
        path: The file.
        name: The tensor's name there. None: it is the only one.

    Raises:
        ValueError: There is no such tensor, or the file is not as the format demands.
        OSError: The file cannot be read.
    """
    with path.open("rb") as file:
        size = os.fstat(file.fileno()).st_size
        start, tensors = _header(path.name, file, size)
        known = ", ".join(list(tensors)[:10])
        if name is None and len(tensors) != 1:
            raise ValueError(f"{path.name} has {len(tensors)} tensors: name one as `tensor`: {known}")
        found = name if name is not None else next(iter(tensors))
        if found not in tensors:
            raise ValueError(f"{path.name} has no tensor {found!r}; it has {known}")
        where = f"{path.name}: {found[:100]}"
        dtype, shape, begin, end = _described(where, tensors[found])
        if start + end > size:
            raise ValueError(f"{where} ends at byte {start + end:,} of {size:,}: the file is cut off")
        file.seek(start + begin)
        return Tensor(dtype, shape, file.read(end - begin))


def write(path: Path, tensors: Mapping[str, Tensor]) -> None:
    """Writes tensors into a file.

    Raises:
        ValueError: The format has no such dtype.
        OSError: The file cannot be written.
    """
    header: dict[str, Any] = {}
    end = 0
    for name, tensor in tensors.items():
        if tensor.dtype not in _CODES:
            raise ValueError(f"safetensors has no {tensor.dtype}")
        begin, end = end, end + tensor.nbytes
        shape = list(tensor.shape)
        header[name] = {"dtype": _CODES[tensor.dtype], "shape": shape, "data_offsets": [begin, end]}
    text = json.dumps(header).encode()
    # So that the elements are aligned.
    text += b" " * (-len(text) % 8)
    with path.open("wb") as file:
        file.write(_LENGTH.pack(len(text)) + text)
        for tensor in tensors.values():
            file.write(tensor.data)


def _header(name: str, file: Any, size: int) -> tuple[int, dict[str, Any]]:
    """Gives where the elements begin, and what is said of each tensor."""
    first = file.read(_LENGTH.size)
    if len(first) < _LENGTH.size:
        raise ValueError(f"{name} is no safetensors file: it has {size} bytes")
    (length,) = _LENGTH.unpack(first)
    if length > min(MOST_HEADER_BYTES, size - _LENGTH.size):
        most = f"at most {MOST_HEADER_BYTES:,}" if length > MOST_HEADER_BYTES else f"the file has {size:,}"
        raise ValueError(f"{name} is no safetensors file: a header of {length:,} bytes; {most}")
    try:
        header = json.loads(file.read(length), object_pairs_hook=_once)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{name} is no safetensors file: its header is no JSON: {error}") from error
    if not isinstance(header, dict):
        raise ValueError(f"{name} is no safetensors file: its header is no object")
    header.pop("__metadata__", None)
    return _LENGTH.size + length, header


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) < len(pairs):
        raise ValueError("a name stands twice")
    return made


def _described(where: str, described: Any) -> tuple[str, tuple[int, ...], int, int]:
    """Gives dtype, shape, and where the elements begin and end."""
    if not isinstance(described, dict) or set(described) != {"dtype", "shape", "data_offsets"}:
        raise ValueError(f"{where} is not described by dtype, shape and data_offsets")
    dtype, shape, offsets = (described[it] for it in ("dtype", "shape", "data_offsets"))
    if not isinstance(dtype, str) or dtype not in _NAMES:
        raise ValueError(f"{where} has the dtype {dtype!r}, which there is not here"[:300])
    if not _are_sizes(shape) or not _are_sizes(offsets) or len(offsets) != 2 or offsets[0] > offsets[1]:
        raise ValueError(f"{where} has no sizes in shape, or no begin and end in data_offsets")
    needed = math.prod(shape) * DTYPES[_NAMES[dtype]].itemsize
    if offsets[1] - offsets[0] != needed:
        raise ValueError(f"{where} needs {needed:,} bytes, and has {offsets[1] - offsets[0]:,}")
    return _NAMES[dtype], tuple(shape), offsets[0], offsets[1]


def _are_sizes(value: Any) -> bool:
    few = isinstance(value, list) and len(value) <= _MOST_DIMENSIONS
    return few and all(type(it) is int and 0 <= it < 1 << 62 for it in value)
