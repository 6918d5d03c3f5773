"""The reductions on CPUs, by dtype: Gloo's own, those in steps of our own, and torch's of several tensors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from itertools import accumulate

import torch

from ..core.coordinator import ReduceOp
from ..core.dtype import Dtype
from .torch_tensors import TORCH

# Gloo's own, measured with torch 2.13: it refuses every other dtype with "Invalid scalar type"; but for complex32, of
# which it does sums, with arithmetic that torch calls experimental.
_FLOATS = frozenset((Dtype.FLOAT32, Dtype.FLOAT64, Dtype.FLOAT16, Dtype.BFLOAT16))
_INTEGERS = frozenset((Dtype.INT8, Dtype.UINT8, Dtype.INT32, Dtype.INT64, Dtype.BOOL))
_COMPLEX = frozenset((Dtype.COMPLEX64, Dtype.COMPLEX128))

_DTYPES = {
    ReduceOp.SUM: _FLOATS | _INTEGERS | _COMPLEX,
    ReduceOp.PRODUCT: _FLOATS | _INTEGERS,
    ReduceOp.MIN: _FLOATS | _INTEGERS,
    ReduceOp.MAX: _FLOATS | _INTEGERS,
    # Averages of integers and bools have no exact result.
    ReduceOp.AVG: _FLOATS | _COMPLEX,
    ReduceOp.BAND: _INTEGERS,
    ReduceOp.BOR: _INTEGERS,
    ReduceOp.BXOR: _INTEGERS,
}

# What Gloo refuses and torch can compute.
_WIDER = frozenset((Dtype.INT16, Dtype.UINT16, Dtype.UINT32, Dtype.UINT64))
_STEPWISE = {op: frozenset[Dtype]() if op is ReduceOp.AVG else _WIDER for op in ReduceOp}
_STEPWISE[ReduceOp.PRODUCT] = _WIDER | _COMPLEX

_STEPWISE_OF_TORCH = {op: frozenset(TORCH[it] for it in dtypes) for op, dtypes in _STEPWISE.items()}

# torch lacks sums and orders of these. As signed integers they have the same bits and sums, and, with the highest bit
# the other way round, the same order.
_SIGNED = {torch.uint16: torch.int16, torch.uint32: torch.int32, torch.uint64: torch.int64}

_COMBINE: dict[ReduceOp, Callable[[torch.Tensor, torch.Tensor], torch.Tensor]] = {
    ReduceOp.SUM: torch.add,
    ReduceOp.PRODUCT: torch.mul,
    ReduceOp.MIN: torch.minimum,
    ReduceOp.MAX: torch.maximum,
    # Divided by the number of members afterwards.
    ReduceOp.AVG: torch.add,
    ReduceOp.BAND: torch.bitwise_and,
    ReduceOp.BOR: torch.bitwise_or,
    ReduceOp.BXOR: torch.bitwise_xor,
}


def reduces(op: ReduceOp, dtype: Dtype) -> bool:
    """Whether there is `op` on `dtype`: Gloo's, or one in steps of our own."""
    return reduces_on_gloo(op, dtype) or dtype in _STEPWISE[op]


def reduces_on_gloo(op: ReduceOp, dtype: Dtype) -> bool:
    """Whether Gloo itself has `op` on `dtype`."""
    return dtype in _DTYPES[op]


def is_stepwise(op: ReduceOp, dtype: torch.dtype) -> bool:
    """Whether `op` on `dtype` is in steps of our own, because Gloo has none."""
    return dtype in _STEPWISE_OF_TORCH[op]


def on_bytes(op: ReduceOp, dtype: torch.dtype) -> ReduceOp:
    """`op` for an engine that has bools as bytes, whose sum may be neither 0 nor 1, and is 0 again with 256 members."""
    return ReduceOp.BOR if dtype is torch.bool and op is ReduceOp.SUM else op


def running(given: Sequence[torch.Tensor], op: ReduceOp) -> list[torch.Tensor]:
    """The reductions of the first one, the first two, and so on, of tensors of the same dtype and shape."""
    dtype = given[0].dtype
    return [_restored(it, op, dtype) for it in accumulate(_computable(given, op), _COMBINE[op])]


def combined(given: Sequence[torch.Tensor], op: ReduceOp) -> torch.Tensor:
    """The reduction of them all, one after the other. The sum for `avg`."""
    return _restored(reduce(_COMBINE[op], _computable(given, op)), op, given[0].dtype)


def _computable(given: Sequence[torch.Tensor], op: ReduceOp) -> Sequence[torch.Tensor]:
    signed = _SIGNED.get(given[0].dtype)
    if signed is None:
        return given
    return [_turned(it.view(signed), op) for it in given]


def _restored(reduction: torch.Tensor, op: ReduceOp, dtype: torch.dtype) -> torch.Tensor:
    return reduction if reduction.dtype is dtype else _turned(reduction, op).view(dtype)


def _turned(signed: torch.Tensor, op: ReduceOp) -> torch.Tensor:
    return signed ^ torch.iinfo(signed.dtype).min if op in (ReduceOp.MIN, ReduceOp.MAX) else signed


def finished(reduction: torch.Tensor, op: ReduceOp, members: int) -> torch.Tensor:
    """The result of `op`, in place, for a reduction of so many members."""
    return reduction.div_(members) if op is ReduceOp.AVG else reduction
