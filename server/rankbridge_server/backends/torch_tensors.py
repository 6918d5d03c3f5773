"""Tensors in torch."""

from __future__ import annotations

import ctypes
import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import cast

import torch

from ..core.dtype import Dtype
from ..core.errors import BridgeError, ErrorCode, invalid
from ..core.refs.summary import Bounds, Summary
from ..core.refs.tensors import Arange, Full, Init, Normal, TensorSpec, Uniform
from . import summaries
from .pieces import as_bytes

TORCH: dict[Dtype, torch.dtype] = {dtype: getattr(torch, dtype.torch_name) for dtype in Dtype}
"""torch's dtype for each dtype of the core."""

_CPU = torch.device("cpu")
_AT_ONCE = nullcontext()
# Dtypes whose generators and fills torch does in float32 first.
_NARROW = frozenset(dtype for dtype in Dtype if dtype.torch_name.startswith("float8"))

# Elements that are made at a time, where making them takes more memory than the elements.
_BLOCK = 1 << 17
# torch makes normal ones 16 at a time, and fewer than these in another way.
_LEAST = 16


class TorchTensors:
    """Contiguous tensors in host memory, one torch.Tensor each. Implements `core.tensors.Tensors`.

    A subclass for another `device` reads and writes them in its own way.
    """

    dtypes = tuple(TORCH)

    def __init__(self, device: torch.device = _CPU) -> None:
        self.device = str(device)
        self._on = device

    def create(self, spec: TensorSpec, init: Init) -> object:
        """A new tensor; random ones come from torch's CPU generator with the given seed."""
        self._check_device(spec)
        with self._settled(), _allocating(spec):
            match init:
                case Full(value):
                    return self._full(spec, value)
                case Arange(start, step):
                    return self._placed(self._arange(spec, start, step))
                case Uniform() | Normal():
                    return self._placed(self._random(spec, init))

    def empty(self, spec: TensorSpec) -> object:
        """A new contiguous tensor."""
        self._check_device(spec)
        with self._settled(), _allocating(spec):
            return torch.empty(spec.shape, dtype=TORCH[spec.dtype], device=self._on)

    def copied(self, tensor: object) -> object:
        """A copy that nothing can change which has the tensor."""
        made = cast(torch.Tensor, tensor).detach()
        with self._settled():
            return made.to(self._on, copy=True, memory_format=torch.contiguous_format)

    def reshaped(self, tensor: object, shape: Sequence[int]) -> object:
        """A view where that can be."""
        with self._settled():
            return cast(torch.Tensor, tensor).reshape(tuple(shape))

    def cut(self, tensor: object, shapes: Sequence[Sequence[int]]) -> Sequence[object]:
        """Copies, because a view would keep the whole tensor's memory for one part."""
        given = cast(torch.Tensor, tensor)
        lengths = [math.prod(shape) * given.itemsize for shape in shapes]
        with self._settled():
            parts = zip(torch.split(as_bytes(given.contiguous()), lengths), shapes, strict=True)
            return [part.clone().view(given.dtype).reshape(tuple(shape)) for part, shape in parts]

    def read(self, tensor: object) -> memoryview:
        """The elements, in place."""
        return memory_of(cast(torch.Tensor, tensor).contiguous())

    def write(self, tensor: object) -> memoryview:
        """The elements, in place."""
        return memory_of(cast(torch.Tensor, tensor))

    def adopted(self, spec: TensorSpec, memory: memoryview) -> object | None:
        """A tensor on the memory itself."""
        self._check_device(spec)
        return torch.frombuffer(memory, dtype=torch.uint8).view(TORCH[spec.dtype]).reshape(spec.shape)

    def written(self, tensor: object) -> None:
        """Checks that bools are 0 or 1: other bytes are undefined behaviour in torch."""
        checked = cast(torch.Tensor, tensor)
        if checked.dtype is torch.bool:
            check_bools(checked.view(torch.uint8))

    def described(self, tensor: object) -> tuple[str, tuple[int, ...]]:
        """Of a DTensor, the whole one's."""
        given = cast(torch.Tensor, tensor)
        return str(given.dtype).removeprefix("torch."), tuple(given.shape)

    def find(self, tensor: object, bounds: Bounds) -> str:
        """Looks at a part at a time."""
        with self._settled():
            return summaries.find(cast(torch.Tensor, tensor), bounds)

    def summary(self, tensor: object) -> Summary:
        """Computes in an order of its own: the same on every rank."""
        with self._settled():
            return summaries.summarize(cast(torch.Tensor, tensor))

    def elements(self, tensor: object, start: int, count: int) -> bytes:
        """Those that are there."""
        with self._settled():
            return bytes(memory_of(summaries.elements(cast(torch.Tensor, tensor), start, count)))

    def _settled(self) -> AbstractContextManager[None]:
        """The context of work on tensors; on leaving, all of it is done."""
        return _AT_ONCE

    def _placed(self, made: torch.Tensor) -> torch.Tensor:
        """Moves a tensor from host memory to the device."""
        return made

    def _check_device(self, spec: TensorSpec) -> None:
        if spec.device not in ("", self.device):
            raise invalid("no such device on this rank", expected=self.device, got=spec.device)

    def _full(self, spec: TensorSpec, value: bool | int | float) -> torch.Tensor:
        dtype = spec.dtype
        if dtype.kind == "bool":
            if not isinstance(value, bool) and value not in (0, 1):
                raise invalid("the element does not fit the dtype", expected="a bool", got=str(value))
        elif dtype.kind == "int":
            if isinstance(value, bool) or not float(value).is_integer() or not _fits(dtype, int(value)):
                raise invalid("the element does not fit the dtype", expected=str(dtype), got=str(value))
            value = int(value)
        try:
            return self._filled(spec, value)
        except RuntimeError as error:
            if "overflow" not in str(error):
                raise
            raise invalid(
                "the element does not fit the dtype", expected=str(dtype), got=str(value)
            ) from error

    def _filled(self, spec: TensorSpec, value: bool | int | float) -> torch.Tensor:
        """Raises RuntimeError: the dtype has no such number."""
        dtype = spec.dtype
        if dtype in _NARROW:
            one = torch.full((), value, dtype=torch.float32).to(TORCH[dtype])
            return self._placed(one.expand(spec.shape).contiguous())
        if dtype is Dtype.COMPLEX32:
            # By way of its halves: torch warns of complex32 arithmetic, of which there is none here.
            pairs = torch.zeros((*spec.shape, 2), dtype=torch.float16)
            pairs[..., 0] = value
            return self._placed(torch.view_as_complex(pairs))
        return torch.full(spec.shape, value, dtype=TORCH[dtype], device=self._on)

    def _arange(self, spec: TensorSpec, start: float, step: float) -> torch.Tensor:
        dtype = spec.dtype
        if dtype.kind in ("bool", "complex"):
            raise BridgeError.of(ErrorCode.UNSUPPORTED_DTYPE, f"arange has no meaning for dtype {dtype}")
        if dtype.kind == "int":
            if not (float(start).is_integer() and float(step).is_integer()):
                got = f"start {start}, step {step}"
                raise invalid(
                    "start and step do not fit the dtype", expected=f"integers for {dtype}", got=got
                )
            at_first = int(start)
            last = at_first + int(step) * max(0, spec.elements - 1)
            if not (_fits(dtype, at_first) and _fits(dtype, last)):
                got = f"{at_first} to {last}"
                raise invalid("the elements do not fit the dtype", expected=str(dtype), got=got)
        made = torch.empty(spec.elements, dtype=TORCH[dtype])
        for first, end in _pieces(spec.elements):
            made[first:end].copy_(_stretch(dtype, first, end, start, step))
        return made.reshape(spec.shape)

    def _random(self, spec: TensorSpec, init: Uniform | Normal) -> torch.Tensor:
        dtype = spec.dtype
        if dtype.kind != "float":
            raise BridgeError.of(
                ErrorCode.UNSUPPORTED_DTYPE,
                f"random elements are made for floating-point dtypes, not {dtype}",
            )
        fill = _filling(init, torch.float32 if dtype in _NARROW else TORCH[dtype])
        if dtype not in _NARROW:
            return fill(torch.empty(spec.shape, dtype=TORCH[dtype]))
        made = torch.empty(spec.elements, dtype=TORCH[dtype])
        for first, end in _pieces(spec.elements):
            made[first:end].copy_(fill(torch.empty(end - first)))
        return made.reshape(spec.shape)


def _filling(init: Uniform | Normal, dtype: torch.dtype) -> Callable[[torch.Tensor], torch.Tensor]:
    """A function that fills tensors of this dtype with the next random elements. Raises INVALID_ARGUMENT."""
    generator = torch.Generator().manual_seed(init.seed)
    if isinstance(init, Uniform):
        low, high = init.low, init.high
        if not low < high:
            raise invalid("low must be below high", expected=f"more than {low}", got=str(high))
        most = torch.finfo(dtype).max
        if not (-most <= low and high <= most and high - low <= most):
            raise invalid(
                "low and high are out of the dtype's range, or too far apart",
                expected=f"-{most} to {most}, and not more than {most} apart",
                got=f"{low} and {high}",
            )
        return lambda tensor: tensor.uniform_(low, high, generator=generator)
    mean, std = init.mean, init.std
    if not std >= 0:
        raise invalid("std is negative", expected="0 or more", got=str(std))
    return lambda tensor: tensor.normal_(mean, std, generator=generator)


def _pieces(elements: int) -> Iterator[tuple[int, int]]:
    """Where to begin and end: pieces of `_BLOCK`, and a last one of `_LEAST` or more, unless that is all there is."""
    first = 0
    while first < elements:
        end = first + _BLOCK
        if elements - end < _LEAST:
            end = elements
        yield first, end
        first = end


@contextmanager
def _allocating(spec: TensorSpec) -> Iterator[None]:
    """Raise RESOURCE_EXHAUSTED where the host has no memory for a tensor: it may have less than a rank may hold."""
    try:
        yield
    except RuntimeError as error:
        # torch has no exception of its own for this.
        if "DefaultCPUAllocator" not in str(error):
            raise
        raise BridgeError.of(
            ErrorCode.RESOURCE_EXHAUSTED,
            f"no room for {spec}: the host has no memory left for it",
            expected="memory to be had",
            got=f"{spec.nbytes} bytes refused",
        ) from error


def _stretch(dtype: Dtype, first: int, end: int, start: float, step: float) -> torch.Tensor:
    """Elements `first` to `end` of an arange, in a dtype that holds them exactly or is the widest there is."""
    if dtype.kind != "int":
        return torch.arange(first, end, dtype=torch.float64) * step + start
    # Two's complement all the way, so that uint64's upper half comes out right as well.
    flat = (torch.arange(first, end) * _signed(int(step)) + _signed(int(start))).view(torch.uint64)
    return flat if dtype is Dtype.UINT64 else flat.view(torch.int64)


def _fits(dtype: Dtype, value: int) -> bool:
    info = torch.iinfo(TORCH[dtype])
    return info.min <= value <= info.max


def _signed(value: int) -> int:
    return (value + 2**63) % 2**64 - 2**63


def check_bools(values: torch.Tensor) -> None:
    """Raises INVALID_ARGUMENT unless the bytes, as uint8, are bools."""
    # Not `values > 1`, which would be as large again.
    if values.numel() and int(values.max()) > 1:
        raise invalid("a bool is neither 0 nor 1", expected="bytes 0 and 1")


def memory_of(tensor: torch.Tensor) -> memoryview:
    """A view of a contiguous tensor's host memory. The view keeps the tensor alive."""
    nbytes = tensor.numel() * tensor.element_size()
    if not nbytes:
        # An empty view that is writable, as any other.
        return memoryview(bytearray())
    memory = (ctypes.c_uint8 * nbytes).from_address(tensor.data_ptr())
    memory._rankbridge_owner = tensor  # type: ignore[attr-defined]
    return memoryview(memory).cast("B")
