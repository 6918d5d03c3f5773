"""Messages as plain JSON terms, the same in every language's tests.

A message is an object of the fields that are set: for a oneof the one that it holds, for other scalars those
not at their default. Integers are JSON integers of any size, text is a string, enums are their name (their
number where it has none), lists are lists. Floats are `{"f64": hex of the 8 bytes, big-endian}`, so that NaN,
infinities and -0.0 survive; bytes are `{"b64": base64}`.
"""

import base64
import struct
from typing import Any

from google.protobuf.descriptor import EnumDescriptor, FieldDescriptor
from google.protobuf.message import Message

Plain = Any
"""What `json` reads and writes."""

Field = Any
"""A FieldDescriptor; protobuf has more than one class for it."""

CANONICAL_NAN = bytes.fromhex("7ff8000000000000")


def is_repeated(field: Field) -> bool:
    """Whether the field is a list. The descriptor's own name for this differs among protobuf versions."""
    return bool(field.is_repeated) if hasattr(field, "is_repeated") else field.label == field.LABEL_REPEATED


def to_plain(message: Message) -> dict[str, Plain]:
    """The message as plain terms. Unknown fields are left out."""
    return {field.name: _value_to_plain(field, value) for field, value in message.ListFields()}


def _value_to_plain(field: Field, value: Any) -> Plain:
    if is_repeated(field):
        return [_element_to_plain(field, element) for element in value]
    return _element_to_plain(field, value)


def _element_to_plain(field: Field, value: Any) -> Plain:
    if field.cpp_type == FieldDescriptor.CPPTYPE_MESSAGE:
        return to_plain(value)
    if field.cpp_type in (FieldDescriptor.CPPTYPE_DOUBLE, FieldDescriptor.CPPTYPE_FLOAT):
        return float_to_plain(value)
    if field.type == FieldDescriptor.TYPE_BYTES:
        return {"b64": base64.b64encode(value).decode()}
    if field.cpp_type == FieldDescriptor.CPPTYPE_ENUM:
        return _enum(field).values_by_number[value].name if value in _enum(field).values_by_number else value
    return value


def float_to_plain(value: float) -> Plain:
    """The eight bytes of a float; every NaN is the same one."""
    packed = CANONICAL_NAN if value != value else struct.pack(">d", value)
    return {"f64": packed.hex()}


def from_plain(message: Message, fields: dict[str, Plain]) -> None:
    """Sets the fields of an empty message. Raises KeyError for a field that it does not have."""
    for name, plain in fields.items():
        field = message.DESCRIPTOR.fields_by_name[name]
        is_message = field.cpp_type == FieldDescriptor.CPPTYPE_MESSAGE
        if is_repeated(field):
            for element in plain:
                if is_message:
                    from_plain(getattr(message, name).add(), element)
                else:
                    getattr(message, name).append(_element_from_plain(field, element))
        elif is_message:
            getattr(message, name).SetInParent()
            from_plain(getattr(message, name), plain)
        else:
            setattr(message, name, _element_from_plain(field, plain))


def _element_from_plain(field: Field, plain: Plain) -> Any:
    if isinstance(plain, dict) and "f64" in plain:
        return struct.unpack(">d", bytes.fromhex(plain["f64"]))[0]
    if isinstance(plain, dict):
        return base64.b64decode(plain["b64"])
    if field.cpp_type == FieldDescriptor.CPPTYPE_ENUM and isinstance(plain, str):
        return _enum(field).values_by_name[plain].number
    return plain


def _enum(field: Field) -> EnumDescriptor:
    return field.enum_type  # type: ignore[no-any-return]
