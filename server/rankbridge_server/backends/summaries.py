"""What a tensor is like, in a few numbers that are computed where it is."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import blake2b
from typing import cast

import torch

from ..core.refs.summary import Summary as Summary

_CHUNK = 1 << 20
"""Elements that are looked at together: a summary needs memory for so many in double precision."""


class NoSummary(TypeError):
    """A tensor whose elements are not all there, or are no numbers: sparse, quantized, on the device `meta`."""


@dataclass(frozen=True, slots=True)
class Difference:
    """Of two tensors of one dtype and shape. `elements`: how many differ. `first`: where the first does, row-major; -1.

    `most`: the largest difference between two elements of which neither is NaN or infinite.
    """

    elements: int
    first: int
    most: float


def summarize(tensor: torch.Tensor) -> Summary:
    """Summarizes a tensor of any dtype, device and strides; of a DTensor, this rank's part. Raises NoSummary.

    It only reads, and computes in an order of its own: the same on every rank.
    """
    own = local(tensor)
    dtype = str(own.dtype).removeprefix("torch.")
    digest = blake2b(f"{dtype} {tuple(own.shape)} ".encode(), digest_size=16)
    norms, sums = list[float](), list[float]()
    least: float | int | None = None
    most: float | int | None = None
    count = nans = infs = 0
    for chunk in _chunks(own):
        digest.update(chunk.view(torch.uint8).numpy().data)
        values = _numbers(chunk)
        if values.is_floating_point():
            chunk_nans, finite = int(values.isnan().sum()), values.isfinite()
            nans += chunk_nans
            infs += len(values) - chunk_nans - int(finite.sum())
            values = values[finite]
        if not len(values):
            continue
        low, high = values.min().item(), values.max().item()
        least, most = low if least is None else min(least, low), high if most is None else max(most, high)
        exact = values.double()
        norms.append(_norm(exact))
        # Halves, so that a sum of large numbers does not overflow before it is divided.
        sums.append(float(exact.mul(0.5).mean()) * len(exact))
        count += len(exact)
    mean = 2 * math.fsum(it / count for it in sums) if count else None
    norm = math.hypot(*norms)
    return Summary(dtype, tuple(own.shape), norm, least, most, mean, nans, infs, digest.hexdigest())


def difference_of(one: torch.Tensor, other: torch.Tensor) -> Difference:
    """Compares two tensors of one dtype and shape, bit for bit. Raises NoSummary."""
    elements, first, most = 0, -1, 0.0
    for place, (a, b) in enumerate(zip(_chunks(local(one)), _chunks(local(other)), strict=True)):
        differs = (_bytes(a) != _bytes(b)).any(1)
        if count := int(differs.sum()):
            elements += count
            first = first if first >= 0 else place * _CHUNK + int(differs.nonzero()[0])
            gaps = (_wide(a) - _wide(b)).abs()
            gaps = gaps[gaps.isfinite()]
            most = max(most, float(gaps.max()) if len(gaps) else 0.0)
    return Difference(elements, first, most)


def _bytes(chunk: torch.Tensor) -> torch.Tensor:
    return chunk.view(torch.uint8).reshape(-1, chunk.itemsize)


def _wide(chunk: torch.Tensor) -> torch.Tensor:
    return chunk.to(torch.complex128) if chunk.is_complex() else _numbers(chunk).double()


def local(tensor: torch.Tensor) -> torch.Tensor:
    """This rank's part of a tensor, with its elements in memory. Raises NoSummary."""
    found = tensor.detach()
    to_local = getattr(found, "to_local", None)
    if to_local is not None:
        found = cast(torch.Tensor, to_local())
    if found.layout is not torch.strided or found.is_quantized or found.is_meta:
        kind = "meta" if found.is_meta else "quantized" if found.is_quantized else str(found.layout)
        raise NoSummary(f"a tensor that is {kind.removeprefix('torch.')} has no summary")
    return found.resolve_conj().resolve_neg()


def _chunks(tensor: torch.Tensor) -> Iterator[torch.Tensor]:
    """All elements in row-major order, in parts, on the CPU and contiguous."""
    flat = tensor.contiguous().view(-1)
    for start in range(0, len(flat), _CHUNK):
        yield flat[start : start + _CHUNK].cpu()


def _numbers(chunk: torch.Tensor) -> torch.Tensor:
    """The elements as doubles or, where they are whole numbers, so that `min` and `max` are exact."""
    if chunk.is_complex():
        # The absolute value of a part that is not finite may be either; a NaN wins.
        whole = chunk.to(torch.complex128)
        parts = torch.view_as_real(whole)
        return whole.abs().where(~parts.isnan().any(-1), math.nan)
    if chunk.is_floating_point():
        # There are dtypes of 8 bits that convert to single precision alone.
        return chunk.float().double() if chunk.itemsize < 4 else chunk.double()
    if chunk.dtype is torch.uint64:
        return _unsigned(chunk)
    return chunk.long()


def _unsigned(chunk: torch.Tensor) -> torch.Tensor:
    """Unsigned numbers of 64 bits, which torch cannot compare."""
    signed = chunk.view(torch.int64)
    if bool((signed >= 0).all()):
        return signed
    return torch.from_numpy(chunk.numpy().astype("float64"))


def _norm(values: torch.Tensor) -> float:
    # Squares of large numbers overflow, those of small ones vanish.
    scale = float(values.abs().max())
    return scale * float(torch.linalg.vector_norm(values / scale)) if scale else 0.0
