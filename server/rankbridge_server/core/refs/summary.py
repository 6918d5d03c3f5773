"""What a tensor is like, in a few numbers."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Summary:
    """What a tensor is like. Equal tensors of any two ranks have equal summaries.

    `norm`: Euclidean. `norm`, `least`, `most`, `mean` are of the finite elements, of complex ones by their absolute
    values; without any, `norm` is 0 and the others are None. `least` and `most` of whole numbers are exact.
    `nans`, `infs`: how many elements are, or have a part that is. `digest`: equal exactly if dtype, shape and all
    elements are, bit for bit, in row-major order; 32 hexadecimal digits.
    """

    dtype: str
    shape: tuple[int, ...]
    norm: float
    least: float | int | None
    most: float | int | None
    mean: float | None
    nans: int
    infs: int
    digest: str
