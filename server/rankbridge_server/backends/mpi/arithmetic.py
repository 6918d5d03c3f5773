"""The reductions of MPI, and torch's for the others."""

from __future__ import annotations

from collections.abc import Callable, Sequence
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
_COMBINE: dict[ReduceOp, Callable[[torch.Tensor, torch.Tensor], torch.Tensor]] = {
    ReduceOp.SUM: torch.add,
    ReduceOp.PRODUCT: torch.mul,
    ReduceOp.MIN: torch.minimum,
    ReduceOp.MAX: torch.maximum,
    ReduceOp.AVG: torch.add,
    ReduceOp.BAND: torch.bitwise_and,
    ReduceOp.BOR: torch.bitwise_or,
    ReduceOp.BXOR: torch.bitwise_xor,
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


def running(given: Sequence[torch.Tensor], op: ReduceOp) -> list[torch.Tensor]:
    """The reductions of the first one, the first two, and so on, of tensors of the same dtype and shape."""
    results = [given[0]]
    for other in given[1:]:
        results.append(_COMBINE[op](results[-1], other))
    return results


def combined(given: Sequence[torch.Tensor], op: ReduceOp) -> torch.Tensor:
    """The reduction of them all, one after the other. The sum for `avg`."""
    result = given[0]
    for other in given[1:]:
        result = _COMBINE[op](result, other)
    return result


def finished(reduction: torch.Tensor, op: ReduceOp, members: int) -> torch.Tensor:
    """The result of `op`, in place, for a reduction of so many members."""
    return reduction.div_(members) if op is ReduceOp.AVG else reduction
