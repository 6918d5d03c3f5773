"""Elements of tensors, made from a few numbers, the same in every language and on every machine."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from rankbridge._plan.dtypes import DTYPES
from rankbridge._plan.tensor import Tensor
from rankbridge.harness.floats import encode
from rankbridge.harness.kinds import RANK

_UNSIGNED = npt.NDArray[np.uint64]

_GOLDEN = 0x9E3779B97F4A7C15
_RANK_STEP = 0xD1342543DE82EF95
_WRAP = (1 << 64) - 1


def for_rank(value: Any, rank: int) -> Any:
    """Gives a value with the rank in the place of each ``$rank``."""
    match value:
        case dict():
            return {key: for_rank(it, rank) for key, it in value.items()}
        case list():
            return [for_rank(it, rank) for it in value]
    return rank if value == RANK else value


def made(described: Mapping[str, Any], rank: int, seed: int) -> Tensor:
    """Makes a rank's tensor of its description.

    Args:
        described: As `tensor` of the vocabulary.
        rank: The rank.
        seed: For elements that are ``random``.

    Raises:
        ValueError: The description says nothing that can be: values that do not fill the shape.
    """
    it = for_rank(described, rank)
    dtype, shape = it["dtype"], tuple(it["shape"])
    count = math.prod(shape)
    if "values" in it:
        values = _array(it["values"], dtype)
        if values.size != count:
            raise ValueError(f"{values.size} values do not fill a tensor {dtype}{list(shape)}")
        return encode(values.reshape(shape), dtype)
    match it.get("fill", 0):
        case "rank":
            return encode(np.full(shape, rank), dtype)
        case "random":
            return pseudorandom(seed, rank, dtype, shape)
        case {"seed": int(own)}:
            return pseudorandom(own, rank, dtype, shape)
        case {"arange": start}:
            given = start if isinstance(start, dict) else {"start": rank if start == "rank" else start}
            elements = given.get("start", 0) + np.arange(count) * given.get("step", 1)
            return encode(elements.reshape(shape), dtype)
        case number:
            return encode(np.full(shape, number), dtype)


def _array(values: Any, dtype: str) -> npt.NDArray[Any]:
    """Gives numbers in lists as an array; complex ones are pairs."""
    numbers = _numbers(values)
    if dtype.startswith("complex"):
        pairs = np.asarray(numbers, np.float64)
        if pairs.shape[-1:] != (2,):
            raise ValueError("complex numbers are pairs: [real, imaginary]")
        return np.asarray(pairs[..., 0] + 1j * pairs[..., 1])
    kind = DTYPES[dtype].numpy
    whole = kind is not None and kind.kind in "iu"
    return np.asarray(numbers, kind) if whole else np.asarray(numbers)


def _numbers(value: Any) -> Any:
    """Gives numbers of texts, too: NaN, infinities, and ints that JSON's readers would round."""
    match value:
        case list():
            return [_numbers(it) for it in value]
        case str():
            try:
                return int(value) if value.lstrip("-").isdecimal() else float(value)
            except ValueError:
                raise ValueError(f"{value!r} is no number") from None
    return value


def draws(seed: int, rank: int, count: int) -> _UNSIGNED:
    """Gives `count` pseudorandom numbers of 64 bits: splitmix64, begun by seed and rank.

    Draw i is ``mix(seed + rank * 0xD1342543DE82EF95 + (i + 1) * 0x9E3779B97F4A7C15)`` modulo 2**64, where mix(z) is:
    ``z ^= z >> 30; z *= 0xBF58476D1CE4E5B9; z ^= z >> 27; z *= 0x94D049BB133111EB; z ^= z >> 31``.
    """
    start = np.uint64((seed + rank * _RANK_STEP) & _WRAP)
    with np.errstate(over="ignore"):
        z = start + np.arange(1, count + 1, dtype=np.uint64) * np.uint64(_GOLDEN)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        mixed: _UNSIGNED = z ^ (z >> np.uint64(31))
    return mixed


def pseudorandom(seed: int, rank: int, dtype: str, shape: tuple[int, ...]) -> Tensor:
    """Makes a tensor of pseudorandom elements, of which every dtype has each exactly.

    Element i is made of b, the upper 8 bits of draw i: of floats b / 16 - 8, of complex numbers that of draws 2 i and
    2 i + 1, of signed ints b - 128, of unsigned ones b, of bools whether b is odd, of floats of 8 bits the bits b. So
    sums of up to 2,048 of them are exact in float32, and in float64 every sum is.
    """
    count = math.prod(shape)
    if dtype.startswith("float8"):
        return Tensor(dtype, shape, _bytes(seed, rank, count).astype(np.uint8))
    if dtype.startswith("complex"):
        both = _bytes(seed, rank, 2 * count).astype(np.float64) / 16 - 8
        return encode((both[0::2] + 1j * both[1::2]).reshape(shape), dtype)
    drawn = _bytes(seed, rank, count)
    kind = DTYPES[dtype].numpy
    if dtype == "bool":
        elements: Any = drawn % 2
    elif kind is None or kind.kind == "f":
        elements = drawn / 16 - 8
    else:
        elements = drawn - 128 if kind.kind == "i" else drawn
    return encode(np.asarray(elements).reshape(shape), dtype)


def _bytes(seed: int, rank: int, count: int) -> npt.NDArray[np.int64]:
    return (draws(seed, rank, count) >> np.uint64(56)).astype(np.int64)
