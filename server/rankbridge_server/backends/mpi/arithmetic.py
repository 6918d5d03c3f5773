"""The reductions of MPI."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from ...core.coordinator import ReduceOp
from .binding import MPI

_DATATYPES = {
    torch.float32: MPI.FLOAT,
    torch.float64: MPI.DOUBLE,
    torch.int8: MPI.INT8_T,
    torch.uint8: MPI.UINT8_T,
    torch.int32: MPI.INT32_T,
    torch.int64: MPI.INT64_T,
    torch.complex64: MPI.C_FLOAT_COMPLEX,
    torch.complex128: MPI.C_DOUBLE_COMPLEX,
    # Of bytes that are 0 or 1.
    torch.bool: MPI.UINT8_T,
}
_OPS = {
    ReduceOp.SUM: MPI.SUM,
    ReduceOp.PRODUCT: MPI.PROD,
    ReduceOp.MIN: MPI.MIN,
    ReduceOp.MAX: MPI.MAX,
    # Divided by the number of members afterwards.
    ReduceOp.AVG: MPI.SUM,
    ReduceOp.BAND: MPI.BAND,
    ReduceOp.BOR: MPI.BOR,
    ReduceOp.BXOR: MPI.BXOR,
}


@dataclass(frozen=True, slots=True)
class Native:
    """A reduction that MPI supports."""

    op: MPI.Op
    datatype: MPI.Datatype


def native(op: ReduceOp, dtype: torch.dtype) -> Native | None:
    """MPI's reduction; None if MPI has none, or one that loses a NaN."""
    datatype = _DATATYPES.get(dtype)
    if datatype is None or (dtype.is_floating_point and op in (ReduceOp.MIN, ReduceOp.MAX)):
        return None
    if dtype is torch.bool and op is ReduceOp.SUM:
        return Native(MPI.BOR, datatype)
    return Native(_OPS[op], datatype)
