"""Every message of rankbridge.v1, and random ones."""

import random
import struct
from collections.abc import Callable
from typing import Any

from google.protobuf.descriptor import FieldDescriptor, FileDescriptor
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass
from tests.vectors.plain import Field, is_repeated

from rankbridge.v1 import (
    call_pb2,
    collective_service_pb2,
    dtype_pb2,
    error_pb2,
    event_pb2,
    gang_service_pb2,
    graph_service_pb2,
    group_service_pb2,
    object_service_pb2,
    operation_service_pb2,
    point_to_point_service_pb2,
    queue_service_pb2,
    rank_service_pb2,
    ref_pb2,
    ref_service_pb2,
    tensor_pb2,
    value_pb2,
)

FILES: list[FileDescriptor] = [
    call_pb2.DESCRIPTOR,
    collective_service_pb2.DESCRIPTOR,
    dtype_pb2.DESCRIPTOR,
    error_pb2.DESCRIPTOR,
    event_pb2.DESCRIPTOR,
    gang_service_pb2.DESCRIPTOR,
    graph_service_pb2.DESCRIPTOR,
    group_service_pb2.DESCRIPTOR,
    object_service_pb2.DESCRIPTOR,
    operation_service_pb2.DESCRIPTOR,
    point_to_point_service_pb2.DESCRIPTOR,
    queue_service_pb2.DESCRIPTOR,
    rank_service_pb2.DESCRIPTOR,
    ref_pb2.DESCRIPTOR,
    ref_service_pb2.DESCRIPTOR,
    tensor_pb2.DESCRIPTOR,
    value_pb2.DESCRIPTOR,
]

CLASSES: dict[str, type[Message]] = {
    name: GetMessageClass(descriptor)
    for file in FILES
    for name, descriptor in sorted(file.message_types_by_name.items())
}
"""Message classes by their short names: "Call"."""

TEXTS = ["", "a", "world", "tp", "äöü", "\u4e16\u754c", "\U0001f600", "\x00", 'q"\\', "x" * 200]
FLOATS = [0.0, -0.0, 1.0, -1.5, 1e-320, 1.7e308, float("inf"), float("-inf"), float("nan"), 0.1]


def random_message(rng: random.Random, name: str, depth: int = 4) -> Message:
    """A message with some fields set, at their defaults too, nested at most `depth` levels."""
    message = CLASSES[name]()
    _fill(rng, message, depth)
    return message


def _fill(rng: random.Random, message: Message, depth: int) -> None:
    for field in message.DESCRIPTOR.fields:
        if rng.random() < 0.4:
            continue
        is_message = field.cpp_type == FieldDescriptor.CPPTYPE_MESSAGE
        if is_message and depth == 0:
            continue
        if is_repeated(field):
            for _ in range(rng.choice([0, 1, 2, 5])):
                if is_message:
                    _fill(rng, getattr(message, field.name).add(), depth - 1)
                else:
                    getattr(message, field.name).append(_scalar(rng, field))
        elif is_message:
            getattr(message, field.name).SetInParent()
            _fill(rng, getattr(message, field.name), depth - 1)
        else:
            setattr(message, field.name, _scalar(rng, field))


def _scalar(rng: random.Random, field: Field) -> Any:
    if field.cpp_type == FieldDescriptor.CPPTYPE_ENUM:
        numbers = [value.number for value in field.enum_type.values]
        return rng.choice([*numbers, 77, -1, 2**31 - 1])
    return _SCALARS[field.type](rng)


def _integer(low: int, high: int) -> Callable[[random.Random], int]:
    def draw(rng: random.Random) -> int:
        edges = [low, high, 0, 1, 127, 128, 16383, 16384, max(low, -1), max(low, -128)]
        bits = rng.randint(1, high.bit_length())
        return rng.choice([*edges, rng.getrandbits(bits), max(low, -rng.getrandbits(bits))])

    return draw


def _double(rng: random.Random) -> float:
    drawn: float = struct.unpack("<d", rng.randbytes(8))[0]
    return rng.choice([*FLOATS, drawn if drawn == drawn else 2.0, rng.uniform(-1, 1)])


_T = FieldDescriptor
_SCALARS: dict[int, Callable[[random.Random], Any]] = {
    _T.TYPE_DOUBLE: _double,
    _T.TYPE_INT64: _integer(-(2**63), 2**63 - 1),
    _T.TYPE_SINT64: _integer(-(2**63), 2**63 - 1),
    _T.TYPE_INT32: _integer(-(2**31), 2**31 - 1),
    _T.TYPE_SINT32: _integer(-(2**31), 2**31 - 1),
    _T.TYPE_UINT64: _integer(0, 2**64 - 1),
    _T.TYPE_UINT32: _integer(0, 2**32 - 1),
    _T.TYPE_BOOL: lambda rng: rng.random() < 0.5,
    _T.TYPE_STRING: lambda rng: rng.choice(TEXTS),
    _T.TYPE_BYTES: lambda rng: rng.randbytes(rng.choice([0, 1, 7, 127, 128, 300])),
}
