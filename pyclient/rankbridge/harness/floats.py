"""Tensors as float64, and back: also of the dtypes that numpy lacks."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from rankbridge._plan.dtypes import DTYPES
from rankbridge._plan.tensor import Tensor
from rankbridge.errors import UnsupportedDtypeError

Values = npt.NDArray[Any]

_EPSILONS = {"float16": 2.0**-10, "bfloat16": 2.0**-7, "float32": 2.0**-23, "float64": 2.0**-52}
_LARGEST = {"float16": 65504.0, "bfloat16": 3.3895313892515355e38}


def decode(tensor: Tensor) -> Values:
    """Gives the elements: floats as float64, complex numbers as complex128, ints and bools as they are.

    Raises:
        UnsupportedDtypeError: float8_*, whose numbers nothing here knows.
    """
    match tensor.dtype:
        case "bfloat16":
            return (tensor.view_uint().astype(np.uint32) << 16).view(np.float32).astype(np.float64)
        case "complex32":
            halves = np.frombuffer(tensor.data, "<f2").astype(np.float64)
            return (halves[0::2] + 1j * halves[1::2]).reshape(tensor.shape)
    array = tensor.numpy()
    if array.dtype.kind == "f":
        return array.astype(np.float64)
    return array.astype(np.complex128) if array.dtype.kind == "c" else array


def encode(values: Values, dtype: str) -> Tensor:
    """Makes a tensor of numbers, each rounded to the nearest that the dtype has; ints wrap around.

    Raises:
        UnsupportedDtypeError: float8_*, unless all are 0.
    """
    shape = values.shape
    match dtype:
        case "bfloat16":
            return Tensor(dtype, shape, _bfloat16(values))
        case "complex32":
            pairs = np.stack([np.real(values), np.imag(values)], axis=-1)
            return Tensor(dtype, shape, np.ascontiguousarray(pairs, "<f2"))
    kind = DTYPES[dtype].numpy
    if kind is None:
        if np.any(values):
            raise UnsupportedDtypeError(f"{dtype} has no numbers here but 0; take a seed", got=dtype)
        return Tensor(dtype, shape, np.zeros(shape, np.uint8))
    with np.errstate(over="ignore", invalid="ignore"):
        if kind.kind in "iu" and values.dtype.kind in "iub":
            converted = values.astype(kind)
        elif kind.kind == "b":
            converted = values != 0
        else:
            converted = values.astype(kind)
    return Tensor(dtype, shape, np.ascontiguousarray(converted))


def _bfloat16(values: Values) -> npt.NDArray[np.uint16]:
    with np.errstate(over="ignore"):
        bits = np.ascontiguousarray(values, np.float32).view(np.uint32)
    # To the nearest, of two as near to the even one.
    rounded = (bits + 0x7FFF + ((bits >> 16) & 1)) >> 16
    quiet = (bits >> 16) | 0x40
    return np.where(np.isnan(bits.view(np.float32)), quiet, rounded).astype("<u2")


def epsilon(dtype: str) -> float:
    """Gives the distance from 1 to the next number of a float dtype, or of the parts of a complex one."""
    return _EPSILONS[_part(dtype)]


def largest(dtype: str) -> float:
    """Gives the largest finite number of a float dtype, or of the parts of a complex one."""
    part = _part(dtype)
    return _LARGEST[part] if part in _LARGEST else float(np.finfo(part).max)


def _part(dtype: str) -> str:
    return {"complex32": "float16", "complex64": "float32", "complex128": "float64"}.get(dtype, dtype)
