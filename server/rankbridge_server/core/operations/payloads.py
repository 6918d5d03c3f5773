"""What travels between members that do not know beforehand what comes: bytes, and maps with tensors in them."""

from __future__ import annotations

import json
import struct
from collections.abc import Sequence
from dataclasses import dataclass

from ..dtype import Dtype
from ..errors import exhausted
from ..refs.tensors import Tensors, TensorSpec

MAX_OBJECT_BYTES = 128 * 1024 * 1024
"""Of all objects that one call gives: half of what a message may have."""

MAX_SKELETON_BYTES = 1024 * 1024
"""Of a tensor dict without its tensors: it goes over the control links."""

_LENGTH = struct.Struct("<I")


@dataclass(frozen=True, slots=True)
class Manifest:
    """The tensors of a tensor dict, and the dict as the wire encodes it, with places for their refs."""

    specs: tuple[TensorSpec, ...]
    skeleton: bytes = b""

    def pack(self) -> bytes:
        """As it goes with an arrival. Raises RESOURCE_EXHAUSTED when it is too long for that."""
        if len(self.skeleton) > MAX_SKELETON_BYTES:
            message = "the tensor dict is too large without its tensors: put large values into tensors"
            raise exhausted(message, most=f"{MAX_SKELETON_BYTES} bytes", got=f"{len(self.skeleton)} bytes")
        specs = json.dumps([[spec.dtype.name, list(spec.shape)] for spec in self.specs]).encode()
        return _LENGTH.pack(len(specs)) + specs + self.skeleton

    @classmethod
    def unpack(cls, data: bytes, device: str) -> Manifest:
        """What `pack` gave, with the tensors on `device`."""
        (length,) = _LENGTH.unpack_from(data)
        end = _LENGTH.size + length
        specs = json.loads(data[_LENGTH.size : end])
        return cls(tuple(TensorSpec(Dtype[name], tuple(shape), device) for name, shape in specs), data[end:])


def bytes_spec(length: int, device: str) -> TensorSpec:
    """What bytes are while they travel."""
    return TensorSpec(Dtype.UINT8, (length,), device)


def as_tensor(tensors: Tensors, data: bytes) -> object:
    """Bytes as a tensor."""
    tensor = tensors.empty(bytes_spec(len(data), tensors.device))
    if data:
        tensors.write(tensor)[:] = data
    tensors.written(tensor)
    return tensor


def as_bytes(tensors: Tensors, tensor: object) -> bytes:
    """The bytes of such a tensor."""
    return bytes(tensors.read(tensor))


def check_total(sizes: Sequence[int]) -> None:
    """Refuse objects that together are too large for an answer; the same on all who know the sizes."""
    if sum(sizes) > MAX_OBJECT_BYTES:
        message = "the objects are too large together: put large values into tensors"
        got = f"{sum(sizes)} bytes: {list(sizes)}"
        raise exhausted(message, most=f"{MAX_OBJECT_BYTES} bytes", got=got)


def pack_numbers(numbers: Sequence[int]) -> bytes:
    """Lengths or sizes, 8 bytes each."""
    return struct.pack(f"<{len(numbers)}Q", *numbers)


def unpack_numbers(payload: bytes) -> tuple[int, ...]:
    """The numbers of `pack_numbers`."""
    return struct.unpack(f"<{len(payload) // 8}Q", payload)
