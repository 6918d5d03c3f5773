"""What the records hold, as Python values: tensors, and whatever a `rankbridge` value can be."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from rankbridge import Tensor as BridgeTensor

Json = Any

NUMPY = {"bfloat16": "float32"}
"""Of dtypes that numpy lacks, the one that holds their elements here."""

CLOSENESS = {
    "float16": 1e-3,
    "bfloat16": 8e-3,
    "float32": 1e-6,
    "float64": 1e-14,
    "complex64": 1e-6,
    "complex128": 1e-14,
}
"""How far elements may be from those recorded, relative to them: the order of a sum is the backend's. Others: exact."""


@dataclass(frozen=True, eq=False)
class Tensor:
    """A tensor by value: dtype by name, and elements."""

    dtype: str
    array: npt.NDArray[Any]

    @classmethod
    def of(cls, dtype: str, data: Json, shape: Json = None) -> Tensor:
        """Reads elements as the records write them: flat or nested, complex ones as pairs."""
        elements = np.asarray(data)
        if dtype.startswith("complex") and not np.iscomplexobj(elements):
            pairs = np.asarray(data, np.float64).reshape(-1, 2)
            elements = pairs[:, 0] + 1j * pairs[:, 1]
        array = elements.astype(NUMPY.get(dtype, dtype))
        return cls(dtype, array if shape is None else array.reshape(shape))

    @classmethod
    def of_bridge(cls, fetched: npt.NDArray[Any] | BridgeTensor) -> Tensor:
        """Reads what a client has fetched."""
        if isinstance(fetched, BridgeTensor):
            if fetched.dtype != "bfloat16":
                return cls(fetched.dtype, np.asarray(fetched.numpy()))
            upper = np.frombuffer(fetched.data, np.uint16).astype(np.uint32) << 16
            return cls("bfloat16", upper.view(np.float32).reshape(fetched.shape))
        return cls(str(fetched.dtype), np.asarray(fetched))

    def for_bridge(self) -> npt.NDArray[Any] | BridgeTensor:
        """What the Python client takes."""
        if self.dtype != "bfloat16":
            return self.array
        elements = np.ascontiguousarray(self.array)
        upper = (elements.view(np.uint32) >> 16).astype(np.uint16)
        assert np.array_equal((upper.astype(np.uint32) << 16).view(np.float32), elements)
        return BridgeTensor("bfloat16", elements.shape, upper.tobytes())

    @property
    def shape(self) -> tuple[int, ...]:
        """Sizes."""
        return self.array.shape

    def close_to(self, other: Tensor) -> bool:
        """Whether dtype and shape are equal, and elements as close as their dtype allows."""
        if (self.dtype, self.shape) != (other.dtype, other.shape):
            return False
        if self.dtype not in CLOSENESS:
            return bool(np.array_equal(self.array, other.array))
        near = CLOSENESS[self.dtype]
        return bool(np.allclose(self.array, other.array, rtol=near, atol=0, equal_nan=True))

    def __repr__(self) -> str:
        """Gives dtype, shape and the first elements."""
        flat = self.array.reshape(-1).tolist()
        shown = f"{flat[:8]}" + ("..." if len(flat) > 8 else "")
        return f"{self.dtype}{list(self.shape)} {shown}"


def plain(recorded: Json) -> Any:
    """Reads what all files but vllm.json record: JSON, and tensors in it."""
    if isinstance(recorded, Mapping):
        if set(recorded) == {"dtype", "shape", "data"}:
            return Tensor.of(recorded["dtype"], recorded["data"], recorded["shape"])
        return {key: plain(value) for key, value in recorded.items()}
    if isinstance(recorded, list):
        return [plain(value) for value in recorded]
    return recorded
