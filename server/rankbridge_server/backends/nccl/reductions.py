"""The reductions that NCCL has, and torch's elements as it takes them."""

from __future__ import annotations

import torch

from ...core.coordinator import ReduceOp
from ...core.dtype import Dtype
from ..process_group import OPS, TorchReduceOp
from ..reductions import reduces_on_gloo

_BITWISE = (ReduceOp.BAND, ReduceOp.BOR, ReduceOp.BXOR)


def reduces(op: ReduceOp, dtype: Dtype) -> bool:
    """What Gloo itself does, but for the bitwise ones."""
    return op not in _BITWISE and reduces_on_gloo(op, dtype)


def numbers(tensor: torch.Tensor, op: ReduceOp) -> tuple[torch.Tensor, TorchReduceOp]:
    """The elements of a contiguous tensor, in its memory and flat, in a dtype that NCCL knows; and what it must do."""
    flat = tensor.reshape(-1)
    if tensor.dtype is torch.bool:
        # As bytes, sums would be more than 1.
        return flat.view(torch.uint8), OPS[ReduceOp.MAX if op is ReduceOp.SUM else op]
    if tensor.is_complex():
        # Sums and averages are those of the two halves; there are no others.
        return torch.view_as_real(flat).reshape(-1), OPS[op]
    return flat, OPS[op]
