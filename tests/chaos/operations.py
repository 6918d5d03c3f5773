"""Random collectives whose results are known."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

import numpy as np
import numpy.typing as npt

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
        """What each member gets; None: nothing."""
        if self.kind == "broadcast":
            return [inputs[self.options["src_rank_in_group"]]] * len(inputs)
        if self.kind == "all_reduce":
            reduce: Any = {"sum": np.add, "product": np.multiply, "min": np.minimum, "max": np.maximum}[
                self.options["op"]
            ]
            return [reduce.reduce(inputs, axis=0, dtype=self.dtype)] * len(inputs)
        joined = np.concatenate(inputs)
        if self.kind == "all_gather":
            return [joined] * len(inputs)
        return [
            joined if member == self.options["dst_rank_in_group"] else None for member in range(len(inputs))
        ]


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
