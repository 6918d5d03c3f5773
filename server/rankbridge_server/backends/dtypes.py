"""The core's dtypes and torch's."""

from __future__ import annotations

import torch

from ..core.dtype import Dtype

TORCH: dict[Dtype, torch.dtype] = {dtype: getattr(torch, dtype.torch_name) for dtype in Dtype}
"""torch's dtype for each dtype of the core."""
