"""What a tensor is, and how its first elements are made. The elements themselves belong to a backend."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from ..dtype import Dtype
from ..errors import invalid
from .summary import Bounds, Summary

MAX_DIMENSIONS = 64
# So that bytes are counted in 63 bits, whatever the dtype.
MAX_ELEMENTS = 2**58


@dataclass(frozen=True, slots=True)
class TensorSpec:
    """dtype, shape (sizes, outermost first; empty means one element) and device of a tensor."""

    dtype: Dtype
    shape: tuple[int, ...]
    device: str

    @property
    def elements(self) -> int:
        """Number of elements."""
        return math.prod(self.shape)

    @property
    def nbytes(self) -> int:
        """Size of the elements in bytes."""
        return self.elements * self.dtype.itemsize

    def check(self) -> None:
        """Raise INVALID_ARGUMENT unless this describes a tensor that can exist."""
        if len(self.shape) > MAX_DIMENSIONS:
            raise invalid(
                "too many dimensions", expected=f"at most {MAX_DIMENSIONS}", got=str(len(self.shape))
            )
        if any(size < 0 for size in self.shape):
            raise invalid("a size in the shape is negative", expected="0 or more", got=str(list(self.shape)))
        # Without elements it fits into any limit, but nobody can count its strides.
        if not self.elements and math.prod(filter(None, self.shape)) > MAX_ELEMENTS:
            raise invalid(
                "the sizes other than 0 are too large",
                expected=f"a product of at most {MAX_ELEMENTS}",
                got=str(list(self.shape)),
            )

    def dimension(self, dim: int) -> int:
        """The dimension `dim` counted from the first, for a `dim` that may count from the last.

        Raises INVALID_ARGUMENT when the tensor has no such dimension.
        """
        dims = len(self.shape)
        if not dims:
            raise invalid(
                "a 0-dimensional tensor cannot be concatenated or divided",
                expected="1 dimension or more",
                got="0",
            )
        if not -dims <= dim < dims:
            raise invalid("dim is out of range", expected=f"{-dims} to {dims - 1}", got=str(dim))
        return dim % dims

    def resized(self, dim: int, size: int) -> TensorSpec:
        """The same with another size along `dim` (0 or more)."""
        shape = (*self.shape[:dim], size, *self.shape[dim + 1 :])
        return TensorSpec(self.dtype, shape, self.device)

    def shape_without(self, dim: int) -> str:
        """The shape in words, with "*" for its size along `dim`."""
        return "[" + ", ".join("*" if at == dim else str(size) for at, size in enumerate(self.shape)) + "]"

    def __str__(self) -> str:
        return f"{self.dtype}{list(self.shape)}"


@dataclass(frozen=True, slots=True)
class Full:
    """Every element `value`; zeros are `Full(0)`."""

    value: bool | int | float


@dataclass(frozen=True, slots=True)
class Arange:
    """Element i, counted in row-major order, is `start + i * step`."""

    start: float
    step: float


@dataclass(frozen=True, slots=True)
class Uniform:
    """Uniform in [low, high), from torch's CPU generator with this seed."""

    seed: int
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Normal:
    """Normal with this mean and standard deviation, from torch's CPU generator with this seed."""

    seed: int
    mean: float
    std: float


Init = Full | Arange | Uniform | Normal


class Tensors(Protocol):
    """How a backend keeps tensors. A tensor is opaque to the core: it is what these functions made."""

    @property
    def device(self) -> str:
        """Device of tensors whose spec names none: "cpu", "cuda:0"."""

    @property
    def dtypes(self) -> Sequence[Dtype]:
        """Dtypes that tensors can have; every collective that does not reduce moves all of them."""

    def create(self, spec: TensorSpec, init: Init) -> object:
        """A new tensor. Raises INVALID_ARGUMENT or UNSUPPORTED_DTYPE when `init` does not fit the dtype."""

    def empty(self, spec: TensorSpec) -> object:
        """A new contiguous tensor with elements of no particular value."""

    def copied(self, tensor: object) -> object:
        """A contiguous copy, on the device, of a tensor that the user's code has made, maybe on another."""

    def reshaped(self, tensor: object, shape: Sequence[int]) -> object:
        """The elements in another shape, row-major; maybe in the same memory."""

    def cut(self, tensor: object, shapes: Sequence[Sequence[int]]) -> Sequence[object]:
        """A flat tensor's elements as tensors of these shapes, one after another, each in memory of its own."""

    def read(self, tensor: object) -> memoryview:
        """The elements, little-endian and row-major, without a copy where that can be."""

    def write(self, tensor: object) -> memoryview:
        """The elements of a tensor from `empty`, to be written before anyone else sees it."""

    def adopted(self, spec: TensorSpec, memory: memoryview) -> object | None:
        """A tensor whose elements are `memory`, without a copy; page-aligned, as long as `spec` says, 1 byte or more.

        It holds `memory` for as long as it lives, and is `written` before anyone sees it. None: this is not where
        tensors are kept.
        """

    def written(self, tensor: object) -> None:
        """Called once when all of `write`'s elements are there; raises INVALID_ARGUMENT if they cannot be."""

    def described(self, tensor: object) -> tuple[str, tuple[int, ...]]:
        """Dtype, as torch names it, and shape of a tensor, which the user's code may have made."""

    def find(self, tensor: object, bounds: Bounds) -> str:
        """Says which of these the elements have: "NaN", "Inf", "3.1e+05". Empty: none."""

    def summary(self, tensor: object) -> Summary:
        """What such a tensor is like. It only reads, in parts; what is written meanwhile, it may see or not.

        Raises NoSummary.
        """

    def elements(self, tensor: object, start: int, count: int) -> bytes:
        """So many elements of such a tensor from the one numbered `start` on, little-endian. Raises NoSummary."""
