"""torch's memory as buffers for mpi4py."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from ..pieces import as_bytes

if TYPE_CHECKING:
    from mpi4py.typing import Buffer


def memory(tensor: torch.Tensor) -> Buffer:
    """The bytes of a contiguous tensor; the request that they are given to keeps them alive."""
    return as_bytes(tensor).numpy()
