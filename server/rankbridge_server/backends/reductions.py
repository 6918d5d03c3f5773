"""The reductions that torch's CPU engines support, by dtype, and torch's own of several tensors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from itertools import accumulate

import torch

from ..core.coordinator import ReduceOp
from ..core.dtype import Dtype

# Measured with torch 2.13 on Gloo, which refuses every other dtype with "Invalid scalar type"; but for complex32, of
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
    """Whether Gloo's reductions support `op` on `dtype`."""
    return dtype in _DTYPES[op]


def running(given: Sequence[torch.Tensor], op: ReduceOp) -> list[torch.Tensor]:
    """The reductions of the first one, the first two, and so on, of tensors of the same dtype and shape."""
    return list(accumulate(given, _COMBINE[op]))


def combined(given: Sequence[torch.Tensor], op: ReduceOp) -> torch.Tensor:
    """The reduction of them all, one after the other. The sum for `avg`."""
    return reduce(_COMBINE[op], given)


def finished(reduction: torch.Tensor, op: ReduceOp, members: int) -> torch.Tensor:
    """The result of `op`, in place, for a reduction of so many members."""
    return reduction.div_(members) if op is ReduceOp.AVG else reduction
