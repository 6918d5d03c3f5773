"""Values of the wire as the user's functions get and give them: Python's objects and torch's tensors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch

from rankbridge.v1 import ref_pb2, tensor_pb2, value_pb2

from ..backends.torch_tensors import TORCH
from ..core.errors import invalid
from ..core.refs.tensors import Tensors, TensorSpec
from ..service.wire import values, wire

DTYPES = {dtype: name for name, dtype in TORCH.items()}
"""The core's dtype for each dtype of torch that it has."""


def read(value: value_pb2.Value, tensors: Tensors, find: Callable[[str], object]) -> Any:
    """The Python object that a value stands for. A ref is its tensor itself, a tensor by value a new one.

    `find`: the tensor of a ref's id; may raise BridgeError. Raises INVALID_ARGUMENT for a map that Python cannot have.
    """
    match value.WhichOneof("kind"):
        case "none" | None:
            return None
        case "big_int":
            return values.number(value)
        case "list":
            return [read(item, tensors, find) for item in value.list.items]
        case "tuple":
            return tuple(read(item, tensors, find) for item in value.tuple.items)
        case "map":
            return _read_map(value.map, tensors, find)
        case "tensor":
            return _read_tensor(value.tensor, tensors)
        case "ref":
            return find(value.ref.id)
        case kind:
            return getattr(value, kind)


def _read_map(value: value_pb2.MapValue, tensors: Tensors, find: Callable[[str], object]) -> dict[Any, Any]:
    result: dict[Any, Any] = {}
    for entry in value.entries:
        key = read(entry.key, tensors, find)
        try:
            known = key in result
        except TypeError:
            raise invalid("a map has a key that Python cannot hash", got=type(key).__name__) from None
        if known:
            raise invalid("a map has keys that are equal in Python", got=repr(key))
        result[key] = read(entry.value, tensors, find)
    return result


def _read_tensor(value: tensor_pb2.Tensor, tensors: Tensors) -> object:
    spec = wire.tensor_spec(value.spec, tensors.device)
    tensor = tensors.empty(spec)
    if value.data:
        tensors.write(tensor)[:] = value.data
    tensors.written(tensor)
    return tensor


class Written:
    """A Python object as a value, in which tensors have places: each a ref that is filled in, or by value.

    `copied`: makes a tensor's copy for its ref; None: tensors go by value. `value`: the object. `tensors`: those
    copies, in order. `specs`: those of their refs. Raises TypeError for an object that has no value, and says where in
    the whole it is.
    """

    def __init__(self, written: object, copied: Callable[[torch.Tensor], Any] | None) -> None:
        self.tensors: list[torch.Tensor] = []
        self.specs: list[TensorSpec] = []
        self._copied = copied
        self.value = self._write(written, "", 0)

    def _write(self, it: object, where: str, depth: int) -> value_pb2.Value:
        if depth > values.MAX_DEPTH:
            raise TypeError(f"a value is nested deeper than {values.MAX_DEPTH} containers{where}")
        match it:
            case torch.Tensor():
                return self._tensor(it, where)
            case np.ndarray():
                return value_pb2.Value(tensor=_by_value(torch.from_numpy(np.ascontiguousarray(it)), where))
            case np.generic():
                return self._write(it.item(), where, depth)
            case str():
                return value_pb2.Value(text=it.encode("utf-8", "replace").decode())
            case bytes() | bytearray() | memoryview():
                return value_pb2.Value(bytes=bytes(it))
            case None | bool() | int() | float():
                return values.pack_value(it if it is None or isinstance(it, bool | float) else int(it))
            case list() | tuple():
                items = [self._write(item, f"{where}[{place}]", depth + 1) for place, item in enumerate(it)]
                if isinstance(it, list):
                    return value_pb2.Value(list=value_pb2.ListValue(items=items))
                return value_pb2.Value(tuple=value_pb2.TupleValue(items=items))
            case dict():
                return value_pb2.Value(map=value_pb2.MapValue(entries=self._entries(it, where, depth)))
        at = f" at {where}" if where else ""
        raise TypeError(f"{type(it).__name__} has no value{at}: give numbers, text, lists, dicts or tensors")

    def _entries(self, it: dict[Any, Any], where: str, depth: int) -> Sequence[value_pb2.MapEntry]:
        return [
            value_pb2.MapEntry(
                key=self._write(key, f"{where} key {key!r}", depth + 1),
                value=self._write(item, f"{where}[{key!r}]", depth + 1),
            )
            for key, item in it.items()
        ]

    def _tensor(self, tensor: torch.Tensor, where: str) -> value_pb2.Value:
        if self._copied is None:
            return value_pb2.Value(tensor=_by_value(tensor, where))
        _check_plain(tensor, where)
        own: torch.Tensor = self._copied(tensor)
        self.tensors.append(own)
        self.specs.append(spec_of(own))
        return value_pb2.Value(ref=ref_pb2.Ref())


def spec_of(tensor: torch.Tensor) -> TensorSpec:
    """The spec of a tensor. Raises TypeError for one of a dtype that the bridge has not."""
    if tensor.dtype not in DTYPES:
        raise TypeError(f"a tensor of {tensor.dtype} has no value")
    return TensorSpec(DTYPES[tensor.dtype], tuple(tensor.shape), str(tensor.device))


def cloned(tensor: torch.Tensor) -> torch.Tensor:
    """A contiguous copy on the tensor's own device."""
    return tensor.detach().clone(memory_format=torch.contiguous_format)


def _check_plain(tensor: torch.Tensor, where: str) -> None:
    if hasattr(tensor, "full_tensor"):
        raise TypeError(f"a DTensor has no value{where}: give its full_tensor(), or its to_local()")
    if tensor.layout is not torch.strided:
        raise TypeError(f"a tensor of layout {tensor.layout} has no value{where}")


def _by_value(tensor: torch.Tensor, where: str) -> tensor_pb2.Tensor:
    _check_plain(tensor, where)
    own = cloned(tensor).cpu()
    spec = spec_of(own)
    data = own.reshape(-1).view(torch.uint8).numpy().tobytes() if own.numel() else b""
    message = wire.pack_tensor_spec(spec)
    message.device = ""
    return tensor_pb2.Tensor(spec=message, data=data)


def parsed(data: bytes) -> value_pb2.Value:
    """A value from its bytes."""
    return value_pb2.Value.FromString(data)
