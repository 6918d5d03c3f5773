"""What tests and the ranks of an MPI job send each other, as bytes."""

from __future__ import annotations

import io
import pickle
from typing import Any

import torch


class _Pickler(pickle.Pickler):
    """Packs tensors of every dtype by their bytes: torch's own way lacks some, and would leave memory behind."""

    def reducer_override(self, it: object) -> Any:
        if not isinstance(it, torch.Tensor):
            return NotImplemented
        data = bytes(it.contiguous().reshape(-1).view(torch.uint8).numpy())
        return _tensor, (it.dtype, tuple(it.shape), data)


def _tensor(dtype: torch.dtype, shape: tuple[int, ...], data: bytes) -> torch.Tensor:
    if not data:
        return torch.empty(shape, dtype=dtype)
    return torch.frombuffer(bytearray(data), dtype=torch.uint8).view(dtype).reshape(shape)


def packed(it: object) -> bytes:
    """Anything that can be pickled, and tensors."""
    written = io.BytesIO()
    _Pickler(written).dump(it)
    return written.getvalue()


def unpacked(data: bytes) -> Any:
    """The other way."""
    return pickle.loads(data)
