"""Values of no particular language, as Python objects and as ``rankbridge.v1.Value``."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from rankbridge._plan.dtypes import DTYPES, dtype_from_wire
from rankbridge._plan.ref import Ref, ref_from_wire, ref_to_wire, spec_to_wire
from rankbridge._plan.tensor import Array, Tensor, as_tensor
from rankbridge.errors import InvalidArgumentError, ProtocolError
from rankbridge.v1 import tensor_pb2, value_pb2

PyValue: TypeAlias = (
    "bool | int | float | str | bytes | list[PyValue] | tuple[PyValue, ...] | dict[PyValue, PyValue]"
    " | npt.NDArray[Any] | np.generic | Tensor | Ref | None"
)
"""What can be a value. A numpy scalar is a 0-dimensional tensor."""

MAX_DEPTH = 30
"""Most containers inside each other: what protobuf's parsers, which stop at 100 messages, can read of any operation."""

_INT64 = range(-(2**63), 2**63)


def to_value(value: object) -> value_pb2.Value:
    """Writes a Python object as a value.

    Args:
        value: None, bool, int of any size, float, str, bytes, list, tuple, dict, numpy array or scalar,
            ``Tensor`` or ``Ref``; containers hold the same. Subclasses travel as their base.

    Raises:
        InvalidArgumentError: It, or something inside it, is nothing of these, or is nested more than
            ``MAX_DEPTH`` deep, or is text that is not Unicode (lone surrogates).
        UnsupportedDtypeError: An array's dtype cannot travel.
    """
    return _write(value, 0)


def from_value(value: value_pb2.Value) -> PyValue:
    """Reads a value as the Python object it stands for: the inverse of ``to_value``.

    A tensor becomes a numpy array, or a ``Tensor`` where numpy lacks its dtype.

    Raises:
        ProtocolError: Nothing is set; a tensor's bytes do not fit its shape; or a map has a key that Python
            cannot hash, or two that are equal in Python (1 and 1.0), so that an entry would be lost.
    """
    kind = value.WhichOneof("kind")
    match kind:
        case "none":
            return None
        case "bool":
            return value.bool
        case "int":
            return value.int
        case "big_int":
            return int.from_bytes(value.big_int, "little", signed=True)
        case "float":
            return value.float
        case "text":
            return value.text
        case "bytes":
            return value.bytes
        case "list":
            return [from_value(item) for item in value.list.items]
        case "tuple":
            return tuple(from_value(item) for item in value.tuple.items)
        case "map":
            return _read_map(value.map)
        case "tensor":
            return _read_tensor(value.tensor)
        case "ref":
            return ref_from_wire(value.ref)
    raise ProtocolError("a value with nothing set", expected="one kind", got="none")


def _write(value: object, depth: int) -> value_pb2.Value:
    match value:
        case None:
            return value_pb2.Value(none=value_pb2.NoneValue())
        case Ref():
            return value_pb2.Value(ref=ref_to_wire(value))
        # Before float and bytes: numpy's float64 and bytes_ are those as well, and have a dtype to keep.
        case Tensor() | np.ndarray() | np.generic():
            return value_pb2.Value(tensor=_write_tensor(as_tensor(value)))
        case bool():
            return value_pb2.Value(bool=value)
        case int():
            return _write_int(int(value))
        case float():
            return value_pb2.Value(float=value)
        case str():
            return _write_text(value)
        case bytes() | bytearray() | memoryview():
            return value_pb2.Value(bytes=bytes(value))
    if depth == MAX_DEPTH:
        raise InvalidArgumentError("the value is nested too deep", expected=f"at most {MAX_DEPTH} containers")
    match value:
        case list():
            return value_pb2.Value(
                list=value_pb2.ListValue(items=[_write(item, depth + 1) for item in value])
            )
        case tuple():
            return value_pb2.Value(
                tuple=value_pb2.TupleValue(items=[_write(item, depth + 1) for item in value])
            )
        case dict():
            entries = [
                value_pb2.MapEntry(key=_write(key, depth + 1), value=_write(item, depth + 1))
                for key, item in value.items()
            ]
            return value_pb2.Value(map=value_pb2.MapValue(entries=entries))
    raise InvalidArgumentError("this cannot be a value", got=type(value).__name__)


def _write_int(value: int) -> value_pb2.Value:
    if value in _INT64:
        return value_pb2.Value(int=value)
    magnitude = value if value >= 0 else ~value
    length = magnitude.bit_length() // 8 + 1
    return value_pb2.Value(big_int=value.to_bytes(length, "little", signed=True))


def _write_text(value: str) -> value_pb2.Value:
    try:
        value.encode()
    except UnicodeEncodeError as error:
        raise InvalidArgumentError(f"the text is not Unicode: {error.reason}", got=repr(value)) from error
    return value_pb2.Value(text=value)


def _write_tensor(tensor: Tensor) -> tensor_pb2.Tensor:
    return tensor_pb2.Tensor(spec=spec_to_wire(tensor.dtype, tensor.shape), data=bytes(tensor.data))


def tensor_from_wire(tensor: tensor_pb2.Tensor) -> Tensor:
    """Reads a tensor.

    Raises:
        ProtocolError: Its bytes do not fill it.
    """
    kind = dtype_from_wire(tensor.spec.dtype)
    try:
        return Tensor(kind.name, tuple(tensor.spec.shape), tensor.data)
    except InvalidArgumentError as error:
        raise ProtocolError(error.message, expected=error.expected, got=error.got) from error


def _read_tensor(tensor: tensor_pb2.Tensor) -> Array:
    value = tensor_from_wire(tensor)
    return value if DTYPES[value.dtype].numpy is None else value.numpy()


def _read_map(entries: value_pb2.MapValue) -> dict[PyValue, PyValue]:
    result: dict[PyValue, PyValue] = {}
    for entry in entries.entries:
        key, value = from_value(entry.key), from_value(entry.value)
        try:
            known = key in result
        except TypeError as error:
            raise ProtocolError(
                "a map has a key that Python cannot hash", got=entry.key.WhichOneof("kind") or ""
            ) from error
        if known:
            raise ProtocolError("a map has keys that are equal in Python", got=repr(key))
        result[key] = value
    return result
