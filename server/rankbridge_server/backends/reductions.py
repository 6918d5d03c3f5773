"""The reductions that torch's CPU engines support, by dtype."""

from __future__ import annotations

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


def reduces(op: ReduceOp, dtype: Dtype) -> bool:
    """Whether Gloo's reductions support `op` on `dtype`."""
    return dtype in _DTYPES[op]
