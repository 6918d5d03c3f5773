"""Dividing tensors among members, and joining members' tensors."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import cast

import torch


def as_bytes(tensor: torch.Tensor) -> torch.Tensor:
    """A contiguous tensor's memory as flat uint8, so that engines can move dtypes that they do not support."""
    return tensor.reshape(-1).view(torch.uint8)


def divided(tensor: torch.Tensor, dim: int, sizes: Sequence[int]) -> list[torch.Tensor]:
    """Contiguous parts of a tensor, of `sizes` along `dim`. They share its memory where possible."""
    return [part.contiguous() for part in torch.split(tensor, list(sizes), dim)]


def copied(tensor: object) -> torch.Tensor:
    """A contiguous copy of a tensor."""
    return cast(torch.Tensor, tensor).clone(memory_format=torch.contiguous_format)


def with_size(shape: Sequence[int], dim: int, size: int) -> list[int]:
    """A shape with another size along `dim`."""
    return [*shape[:dim], size, *shape[dim + 1 :]]


def byte_counts(tensor: torch.Tensor, dim: int, sizes: Sequence[int]) -> list[int]:
    """Bytes of tensors like `tensor`, but of `sizes` along `dim`."""
    others = math.prod(tensor.shape[:dim]) * math.prod(tensor.shape[dim + 1 :])
    return [size * others * tensor.itemsize for size in sizes]


def side_by_side(tensor: torch.Tensor, dim: int, sizes: Sequence[int]) -> torch.Tensor:
    """The parts of a tensor, of `sizes` along `dim`, contiguous one after another, as flat bytes."""
    if math.prod(tensor.shape[:dim]) == 1:
        return as_bytes(tensor.contiguous())
    return torch.cat([as_bytes(part) for part in divided(tensor, dim, sizes)])


def concatenated(pieces: torch.Tensor, shape: Sequence[int], dim: int, sizes: Sequence[int]) -> torch.Tensor:
    """Turns members' tensors, one after another in memory, into their concatenation along `dim`.

    `pieces` is flat; `shape`: of a member's tensor, whatever its size along `dim`; `sizes`: of each one along `dim`.
    The result is contiguous, and shares the memory of `pieces` where possible.
    """
    whole = with_size(shape, dim, sum(sizes))
    if math.prod(whole[:dim]) == 1:
        return pieces.view(whole)
    result = torch.empty(whole, dtype=pieces.dtype, device=pieces.device)
    elements = math.prod(whole[:dim]) * math.prod(whole[dim + 1 :])
    parts = torch.split(pieces, [size * elements for size in sizes])
    for place, part in zip(torch.split(result, list(sizes), dim), parts, strict=True):
        place.copy_(part.view(place.shape))
    return result
