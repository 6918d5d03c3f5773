"""Element types: torch's names, their codes on the wire, their numpy counterparts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from rankbridge.errors import ProtocolError, UnsupportedDtypeError
from rankbridge.v1 import dtype_pb2


@dataclass(frozen=True, slots=True)
class Dtype:
    """One element type.

    Attributes:
        name: torch's name, without "torch.".
        code: Its number in ``rankbridge.v1.Dtype``.
        itemsize: Bytes of one element.
        numpy: The little-endian numpy dtype. None: numpy has none.
    """

    name: str
    code: dtype_pb2.Dtype.ValueType
    itemsize: int
    numpy: np.dtype[Any] | None

    @property
    def uint(self) -> np.dtype[Any]:
        """The little-endian unsigned dtype of the same size, which can carry the elements' bits.

        Raises:
            UnsupportedDtypeError: complex128, for which numpy has no unsigned dtype.
        """
        if self.itemsize > 8:
            raise UnsupportedDtypeError(
                f"numpy has no unsigned dtype of {self.itemsize} bytes", got=self.name
            )
        return np.dtype(f"<u{self.itemsize}")


def _dtype(name: str, spec: str | int) -> Dtype:
    code = dtype_pb2.Dtype.Value(f"DTYPE_{name.upper()}")
    if isinstance(spec, int):
        return Dtype(name, code, spec, None)
    numpy = np.dtype(spec)
    return Dtype(name, code, numpy.itemsize, numpy)


# Of each the numpy dtype, or the bytes of an element where numpy has none.
_SPECS: dict[str, str | int] = {
    "float32": "<f4",
    "float64": "<f8",
    "float16": "<f2",
    "bfloat16": 2,
    "int8": "<i1",
    "int16": "<i2",
    "int32": "<i4",
    "int64": "<i8",
    "uint8": "<u1",
    "uint16": "<u2",
    "uint32": "<u4",
    "uint64": "<u8",
    "bool": "?",
    "complex64": "<c8",
    "complex128": "<c16",
    "float8_e4m3fn": 1,
    "float8_e5m2": 1,
    "float8_e4m3fnuz": 1,
    "float8_e5m2fnuz": 1,
    "complex32": 4,
    "float8_e8m0fnu": 1,
}

DTYPES = {name: _dtype(name, spec) for name, spec in _SPECS.items()}
"""Every dtype by its name."""

_BY_CODE: dict[int, Dtype] = {dtype.code: dtype for dtype in DTYPES.values()}


def dtype_of(named: object) -> Dtype:
    """Finds the dtype that a caller names.

    Args:
        named: A name ("float32", "torch.float32"), a torch dtype, a numpy dtype of any byte order, or a numpy
            scalar type. A dtype of an extension of numpy (``ml_dtypes.bfloat16``) is known by its name.

    Raises:
        UnsupportedDtypeError: It names none of ours.
    """
    name = str(named).removeprefix("torch.")
    if name in DTYPES:
        return DTYPES[name]
    try:
        # numpy takes None for float64, which nobody means here.
        name = "" if named is None else np.dtype(named).name  # type: ignore[call-overload]
    except TypeError:
        name = ""
    if name not in DTYPES:
        raise UnsupportedDtypeError(
            "there is no such dtype", expected=f"one of {', '.join(DTYPES)}", got=str(named)
        )
    return DTYPES[name]


def dtype_from_wire(code: int) -> Dtype:
    """Finds the dtype of a code on the wire.

    Raises:
        ProtocolError: The code is unspecified, or of a newer protocol than this client's.
    """
    if code not in _BY_CODE:
        raise ProtocolError(f"dtype code {code} is unknown to this client", got=str(code))
    return _BY_CODE[code]
