"""Random collectives whose results are known."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

import numpy as np
import numpy.typing as npt

from rankbridge._plan.tensor import as_tensor
from rankbridge.harness import reference

Values = npt.NDArray[Any]

SMALLEST_BYTES = 4
_PERIOD = 13
_KINDS = ("all_reduce", "all_reduce", "all_reduce", "broadcast", "all_gather", "gather")
_DTYPES = ("float32", "float64", "int32", "int64", "uint8")
_REDUCTIONS = ("sum", "product", "min", "max")


@dataclass(frozen=True)
class Operation:
    """One collective of a group, with its inputs.

    `options`: what the client's method takes beside the ref. `elements`: of each member's tensor, which is flat.
    `salt`: makes the inputs of two operations differ.
    """

    kind: str
    dtype: str
    elements: int
    salt: int
    options: dict[str, Any]

    @property
    def nbytes(self) -> int:
        """Bytes of each member's tensor."""
        return self.elements * np.dtype(self.dtype).itemsize

    @property
    def in_place(self) -> bool:
        """Whether the result takes the input's place."""
        return bool(self.options.get("in_place"))

    def __str__(self) -> str:
        options = " ".join(f"{name}={value}" for name, value in self.options.items())
        return f"{self.kind} {self.dtype}[{self.elements}] {options}".rstrip()

    def inputs(self, size: int) -> list[Values]:
        """One tensor for each of `size` members. Reductions of them are exact in every dtype."""
        numbers = np.arange(_PERIOD) * self.salt
        periods = [((numbers + 7 * member) % _PERIOD).astype(self.dtype) for member in range(size)]
        return [np.tile(it, -(-self.elements // _PERIOD))[: self.elements] for it in periods]

    def results(self, inputs: Sequence[Values]) -> list[Values | None]:
        """What each member gets; None: nothing. By the reference model, whose rounding is none here."""
        brought = [as_tensor(it) for it in inputs]
        given = reference.results(self.kind, brought, [self.options] * len(inputs))
        # All members are given the same one.
        made = {id(it): None if it is None else _array(it) for it in given}
        return [made[id(it)] for it in given]


def _array(result: reference.Result) -> Values:
    return (result.tensor if isinstance(result, reference.Near) else result).numpy()


def draw(random: Random, size: int, max_bytes: int) -> Operation:
    """A random operation of a group of `size`, with tensors of 4 bytes to `max_bytes`, small ones as often as large."""
    kind = random.choice(_KINDS)
    dtype = random.choice(_DTYPES)
    # A gathered tensor is as large as all inputs.
    largest = max_bytes // (size if "gather" in kind else 1)
    nbytes = SMALLEST_BYTES * (largest / SMALLEST_BYTES) ** random.random()
    options: dict[str, Any] = {}
    if kind == "all_reduce":
        options = {"op": random.choice(_REDUCTIONS), "in_place": random.random() < 0.5}
    elif kind == "broadcast":
        options = {"src_rank_in_group": random.randrange(size), "in_place": random.random() < 0.5}
    elif kind == "gather":
        options = {"dst_rank_in_group": random.randrange(size)}
    elements = max(1, round(nbytes / np.dtype(dtype).itemsize))
    return Operation(kind, dtype, elements, 1 + random.randrange(12), options)
