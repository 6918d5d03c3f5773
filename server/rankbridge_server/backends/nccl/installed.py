"""Whether this torch has what the backend needs, found out without touching a device."""

from __future__ import annotations

import torch
from torch._C import _distributed_c10d as c10d


def missing() -> str:
    """What this torch was built without, in words; empty when it has all."""
    lacks = []
    if not torch.backends.cuda.is_built():  # type: ignore[no-untyped-call]
        lacks.append("CUDA")
    if not hasattr(c10d, "ProcessGroupNCCL"):
        lacks.append("NCCL")
    return f"torch {torch.__version__} was built without {' and '.join(lacks)}" if lacks else ""
