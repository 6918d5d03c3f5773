"""Laying members' tensors side by side."""

from __future__ import annotations

import torch


def concatenated(pieces: torch.Tensor, members: int, shape: torch.Size, dim: int) -> torch.Tensor:
    """Turn members' tensors of `shape`, one after another in memory, into their concatenation along `dim`.

    `pieces` is flat, of members * elements; the result is contiguous and shares its memory when it can.
    """
    joined = list(shape)
    joined[dim] *= members
    return pieces.view(members, *shape).movedim(0, dim).reshape(joined).contiguous()


def as_bytes(tensor: torch.Tensor) -> torch.Tensor:
    """A contiguous tensor's memory as flat uint8, so that engines move dtypes that they do not know."""
    return tensor.reshape(-1).view(torch.uint8)
