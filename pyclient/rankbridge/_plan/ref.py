"""Refs: handles on tensors that stay on their rank."""

from __future__ import annotations

import math
from dataclasses import dataclass

from rankbridge._plan.dtypes import DTYPES, dtype_from_wire
from rankbridge.v1 import ref_pb2, tensor_pb2


@dataclass(frozen=True, slots=True)
class Ref:
    """A handle on a tensor that stays on its rank.

    Attributes:
        id: Names the value; never used twice.
        rank: Rank in the gang that holds it.
        session_id: Session that owns it. Empty: the rank's shared session.
        dtype: torch's name of its element type.
        shape: Its sizes, outermost first, as of when the ref was given out.
        device: Where its elements live, for example "cpu".
    """

    id: str
    rank: int
    session_id: str
    dtype: str
    shape: tuple[int, ...]
    device: str = "cpu"

    @property
    def nbytes(self) -> int:
        """Size of the elements in bytes."""
        return math.prod(self.shape) * DTYPES[self.dtype].itemsize


def ref_from_wire(ref: ref_pb2.Ref) -> Ref:
    """Reads a ref.

    Raises:
        ProtocolError: Its dtype is unknown.
    """
    spec = ref.tensor
    return Ref(
        ref.id, ref.rank, ref.session_id, dtype_from_wire(spec.dtype).name, tuple(spec.shape), spec.device
    )


def ref_to_wire(ref: Ref) -> ref_pb2.Ref:
    """Writes a ref."""
    spec = spec_to_wire(ref.dtype, ref.shape, ref.device)
    return ref_pb2.Ref(id=ref.id, rank=ref.rank, session_id=ref.session_id, tensor=spec)


def spec_to_wire(dtype: str, shape: tuple[int, ...], device: str = "") -> tensor_pb2.TensorSpec:
    """Writes what a tensor is, without its elements. `device` empty: the rank's own."""
    return tensor_pb2.TensorSpec(dtype=DTYPES[dtype].code, shape=shape, device=device)
