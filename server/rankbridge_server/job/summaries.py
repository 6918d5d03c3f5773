"""What can be said of a tensor without moving it."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

import torch

_BLOCK = 1 << 22
"""Elements that are looked at at a time: a summary takes little memory beside a tensor."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """Of one tensor. Of elements that are neither NaN nor infinite, in float64; None where there are none.

    `norm`: the root of the sum of squares. `hash`: of dtype, shape and all bytes, equal for equal tensors.
    """

    dtype: str
    shape: tuple[int, ...]
    device: str
    norm: float | None
    min: float | None
    max: float | None
    mean: float | None
    nans: int
    infs: int
    hash: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """Of two tensors of one dtype and shape. `elements`: how many differ. `first`: where the first does, row-major.

    `most`: the largest difference between two elements of which neither is NaN or infinite.
    """

    elements: int
    first: int
    most: float


def summary_of(tensor: torch.Tensor) -> Summary:
    """Summarises a tensor of any dtype and strides. A complex number counts by its magnitude, a bool as 0 or 1."""
    flat = tensor.detach().reshape(-1)
    digest = hashlib.blake2b(f"{tensor.dtype} {list(tensor.shape)}".encode(), digest_size=16)
    squares = total = 0.0
    least, most = float("inf"), float("-inf")
    finite = nans = infs = 0
    for block in torch.split(flat, _BLOCK):
        own = block.cpu().contiguous()
        if own.numel():
            digest.update(own.view(torch.uint8).numpy().tobytes())
        numbers = _numbers(own)
        nans += int(numbers.isnan().sum())
        infs += int(numbers.isinf().sum())
        plain = numbers[numbers.isfinite()]
        if plain.numel():
            finite += plain.numel()
            squares += float((plain * plain).sum())
            total += float(plain.sum())
            least, most = min(least, float(plain.min())), max(most, float(plain.max()))
    return Summary(
        dtype=str(tensor.dtype).removeprefix("torch."),
        shape=tuple(tensor.shape),
        device=str(tensor.device),
        norm=squares**0.5 if finite else None,
        min=least if finite else None,
        max=most if finite else None,
        mean=total / finite if finite else None,
        nans=nans,
        infs=infs,
        hash=digest.hexdigest(),
    )


def difference_of(one: torch.Tensor, other: torch.Tensor) -> Difference:
    """Compares two tensors of one dtype and shape, bit for bit."""
    here, there = one.detach().reshape(-1), other.detach().reshape(-1)
    elements, first, most = 0, -1, 0.0
    for place, (a, b) in enumerate(zip(torch.split(here, _BLOCK), torch.split(there, _BLOCK), strict=True)):
        left, right = a.cpu().contiguous(), b.cpu().contiguous()
        differs = (_bytes(left) != _bytes(right)).any(1)
        if count := int(differs.sum()):
            elements += count
            first = first if first >= 0 else place * _BLOCK + int(differs.nonzero()[0])
            gaps = (_wide(left) - _wide(right)).abs()
            gaps = gaps[gaps.isfinite()]
            most = max(most, float(gaps.max()) if gaps.numel() else 0.0)
    return Difference(elements=elements, first=first, most=most)


def _bytes(block: torch.Tensor) -> torch.Tensor:
    return block.view(torch.uint8).reshape(-1, block.element_size())


def _wide(block: torch.Tensor) -> torch.Tensor:
    return block.to(torch.complex128) if block.is_complex() else block.to(torch.float64)


def _numbers(block: torch.Tensor) -> torch.Tensor:
    """Elements as float64, in which all but the largest integers are exact."""
    return block.abs().to(torch.float64) if block.is_complex() else block.to(torch.float64)
