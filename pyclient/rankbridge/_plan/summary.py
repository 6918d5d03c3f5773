"""What a rank says of a tensor, and how it is read from the wire."""

from __future__ import annotations

from dataclasses import dataclass

from rankbridge._plan.dtypes import dtype_from_wire
from rankbridge._plan.wire import fields_of
from rankbridge.v1 import ref_service_pb2


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """What a rank says of a tensor: of elements that are neither NaN nor infinite, in float64; None: there are none.

    Attributes:
        dtype: "float32".
        shape: Sizes, outermost first.
        device: "cpu", "cuda:0".
        norm: Root of the sum of squares.
        min: Least element; of complex numbers, their magnitudes count.
        max: Largest element.
        mean: Mean.
        nans: Number of NaNs.
        infs: Number of infinities.
        hash: Of dtype, shape and all bytes: equal for equal tensors.
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


def summary_from_wire(it: ref_service_pb2.TensorSummary) -> Summary:
    """Reads a summary.

    Raises:
        ProtocolError: Its dtype is unknown.
    """
    spec = it.tensor
    return Summary(
        dtype=dtype_from_wire(spec.dtype).name,
        shape=tuple(spec.shape),
        device=spec.device,
        **fields_of(Summary, it),
    )
