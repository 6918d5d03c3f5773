"""Tensors by value: dtype, shape and bytes, and the ways to and from numpy and torch."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import numpy.typing as npt

from rankbridge._plan.dtypes import DTYPES, Dtype, dtype_of
from rankbridge.errors import InvalidArgumentError, UnsupportedDtypeError

if TYPE_CHECKING:
    import torch

Buffer: TypeAlias = "bytes | bytearray | memoryview | npt.NDArray[Any]"
"""Anything contiguous whose bytes can be read in place."""


class Tensor:
    """A tensor as it travels: elements little-endian, in row-major order, bool as one byte of 0 or 1.

    It holds on to the bytes it is given and copies nothing; who changes them changes the tensor.

    Attributes:
        dtype: torch's name of the element type, for example "bfloat16".
        shape: Sizes, outermost first. Empty: 0-dimensional, one element.
        data: The bytes, flat.
    """

    __slots__ = ("data", "dtype", "shape")

    dtype: str
    shape: tuple[int, ...]
    data: memoryview

    def __init__(self, dtype: object, shape: Sequence[int], data: Buffer) -> None:
        """Checks that the bytes are as many as dtype and shape say.

        Args:
            dtype: Name, torch dtype or numpy dtype.
            shape: Sizes, each 0 or more.
            data: Contiguous bytes, ``prod(shape) * itemsize`` of them.

        Raises:
            UnsupportedDtypeError: No such dtype.
            InvalidArgumentError: A negative size, or too many or too few bytes.
        """
        kind = dtype_of(dtype)
        self.dtype = kind.name
        self.shape = checked_shape(shape)
        self.data = _flat(data)
        need = math.prod(self.shape) * kind.itemsize
        if self.data.nbytes != need:
            raise InvalidArgumentError(
                f"the bytes do not fill a tensor {self.dtype}{list(self.shape)}",
                expected=f"{need} bytes",
                got=f"{self.data.nbytes} bytes",
            )

    @property
    def nbytes(self) -> int:
        """Size of the elements in bytes."""
        return self.data.nbytes

    def numpy(self) -> npt.NDArray[Any]:
        """Gives the elements as a numpy array on the same bytes (read-only where those are).

        Raises:
            UnsupportedDtypeError: numpy has no such dtype (bfloat16, float8_*, complex32).
        """
        kind = self._kind.numpy
        if kind is None:
            raise UnsupportedDtypeError(
                f"numpy has no dtype {self.dtype}: take .torch(), or the bits with .view_uint()",
                got=self.dtype,
            )
        return self._array(kind)

    def view_uint(self) -> npt.NDArray[Any]:
        """Gives each element's bits as an unsigned integer of its size, on the same bytes.

        Raises:
            UnsupportedDtypeError: complex128; take ``.numpy()``.
        """
        return self._array(self._kind.uint)

    def torch(self) -> torch.Tensor:
        """Gives the elements as a torch tensor on the CPU, on the same bytes where those can be written.

        Raises:
            ImportError: torch is not installed.
        """
        import torch

        data = bytearray(self.data) if self.data.readonly else self.data
        dtype: torch.dtype = getattr(torch, self.dtype)
        if not self.data.nbytes:
            return torch.empty(self.shape, dtype=dtype)
        flat = torch.frombuffer(data, dtype=torch.uint8)
        return flat.view(dtype).reshape(self.shape)

    def __eq__(self, other: object) -> bool:
        """Says whether dtype, shape and every bit are equal: -0.0 is not 0.0, and a NaN is itself."""
        if not isinstance(other, Tensor):
            return NotImplemented
        return (self.dtype, self.shape) == (other.dtype, other.shape) and self.data == other.data

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        """Gives dtype and shape, not the elements."""
        return f"Tensor({self.dtype}{list(self.shape)}, {self.nbytes} bytes)"

    @property
    def _kind(self) -> Dtype:
        return DTYPES[self.dtype]

    def _array(self, kind: np.dtype[Any]) -> npt.NDArray[Any]:
        array = np.frombuffer(self.data, dtype=kind).reshape(self.shape)
        return array.astype(kind.newbyteorder("="), copy=False)


Array: TypeAlias = "npt.NDArray[Any] | Tensor"
"""What a fetched tensor is: numpy's where numpy has the dtype, ours where not."""

TensorLike: TypeAlias = "Tensor | torch.Tensor | npt.ArrayLike"
"""What can be put on a rank."""


def as_tensor(value: TensorLike) -> Tensor:
    """Makes a tensor of whatever a caller has, copying only where it must.

    Args:
        value: A ``Tensor``; a numpy array with any strides and byte order; a torch tensor with any strides,
            on any device; or numbers and nested sequences of them, as ``numpy.asarray`` understands them.

    Raises:
        UnsupportedDtypeError: Its dtype cannot travel (object, text, dates, long double, quantized).
        InvalidArgumentError: It is no tensor (ragged sequences, sparse or meta torch tensors).
    """
    if isinstance(value, Tensor):
        return value
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(value, torch.Tensor):
        return _from_torch(value)
    try:
        array = np.asarray(value)
    except (TypeError, ValueError) as error:
        raise InvalidArgumentError(f"this is no tensor: {error}", got=type(value).__name__) from error
    return _from_numpy(array)


def checked_shape(shape: Iterable[int] | int) -> tuple[int, ...]:
    """Makes a tuple of a shape; a single number is the size of one dimension.

    Raises:
        InvalidArgumentError: A size is negative or no integer.
    """
    try:
        sizes = (
            (int(shape.__index__()),) if hasattr(shape, "__index__") else tuple(s.__index__() for s in shape)
        )
    except (AttributeError, TypeError) as error:
        raise InvalidArgumentError("a shape is a sequence of integers", got=repr(shape)) from error
    if any(size < 0 for size in sizes):
        raise InvalidArgumentError("a shape has no negative sizes", got=repr(sizes))
    return sizes


def _from_numpy(array: npt.NDArray[Any]) -> Tensor:
    if array.dtype.name not in DTYPES:
        raise UnsupportedDtypeError(
            "this dtype cannot travel", expected=f"one of {', '.join(DTYPES)}", got=str(array.dtype)
        )
    kind = DTYPES[array.dtype.name]
    little = array.dtype if kind.numpy is None else kind.numpy
    return Tensor(kind.name, array.shape, np.asarray(array, dtype=little, order="C"))


def _from_torch(tensor: torch.Tensor) -> Tensor:
    import torch

    if tensor.is_quantized or str(tensor.dtype).removeprefix("torch.") not in DTYPES:
        raise UnsupportedDtypeError("this dtype cannot travel", got=str(tensor.dtype))
    if tensor.layout is not torch.strided or tensor.is_meta:
        got = "a meta tensor" if tensor.is_meta else str(tensor.layout)
        raise InvalidArgumentError("only strided tensors with elements can travel", got=got)
    local = tensor.detach().cpu().resolve_conj().resolve_neg().contiguous()
    # A tensor of one element counts as contiguous whatever its stride; view() wants the stride to be 1.
    data = local.as_strided((local.numel(),), (1,)).view(torch.uint8).numpy()
    return Tensor(tensor.dtype, tuple(tensor.shape), data)


def _flat(data: Buffer) -> memoryview:
    if isinstance(data, np.ndarray):
        if not data.flags.c_contiguous:
            raise InvalidArgumentError("the bytes of a tensor are contiguous", got=f"strides {data.strides}")
        return data.reshape(-1).view(np.uint8).data
    view = memoryview(data)
    if not view.c_contiguous:
        raise InvalidArgumentError("the bytes of a tensor are contiguous", got=f"strides {view.strides}")
    return view.cast("B") if view.nbytes else memoryview(b"")
