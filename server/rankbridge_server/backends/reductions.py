"""Which reductions torch's CPU engines do on which dtypes."""

from __future__ import annotations

from ..core.coordinator import ReduceOp
from ..core.dtype import Dtype

# Measured with torch 2.13 on Gloo; every other dtype is refused by it with "Invalid scalar type".
_REAL = frozenset(
    (
        Dtype.FLOAT32,
        Dtype.FLOAT64,
        Dtype.FLOAT16,
        Dtype.BFLOAT16,
        Dtype.INT8,
        Dtype.UINT8,
        Dtype.INT32,
        Dtype.INT64,
        Dtype.BOOL,
    )
)
_COMPLEX = frozenset((Dtype.COMPLEX64, Dtype.COMPLEX128))


def reduces(op: ReduceOp, dtype: Dtype) -> bool:
    """Whether Gloo's all_reduce does `op` on `dtype`. Integer and bool averages have no exact result."""
    if op is ReduceOp.AVG:
        return dtype in _COMPLEX or (dtype in _REAL and dtype.kind == "float")
    if op is ReduceOp.SUM:
        return dtype in _REAL or dtype in _COMPLEX
    return dtype in _REAL
