"""How an operation's arguments are read from its request: derived from the descriptor and its options."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from enum import Enum
from operator import attrgetter
from typing import Any, TypeVar, get_type_hints

from google.protobuf.descriptor import Descriptor, EnumDescriptor, FieldDescriptor

from rankbridge.v1 import options_pb2 as options

from ...core.errors import invalid
from ..wire import values, wire

Args = TypeVar("Args")
Read = Callable[[Any], Any]


def reader(args: type[Args], request: Descriptor) -> Callable[[Any], Args]:
    """Makes what reads arguments from a request, which has a field of the same name for each; it may raise BridgeError.

    Raises TypeError when the two have different fields.
    """
    names = [it.name for it in fields(args)]  # type: ignore[arg-type]
    if {"call", *names} != set(request.fields_by_name):
        raise TypeError(f"{args.__name__} has other fields than {request.name}: {names}")
    hints, brings = get_type_hints(args), request.GetOptions().Extensions[options.operation].brings
    reads = [_read(request.fields_by_name[name], hints[name], brings) for name in names]
    make: Callable[..., Args] = args
    # Without a loop where that is quicker: this is done for each call.
    if len(names) > 1 and all(isinstance(read, attrgetter) for read in reads):
        get = attrgetter(*names)
        return lambda request: make(*get(request))
    match reads:
        case []:
            return lambda _: make()
        case [first, second]:
            return lambda request: make(first(request), second(request))
        case _:
            return lambda request: make(*[read(request) for read in reads])


def _read(field: FieldDescriptor, hint: Any, brings: options.Brings.ValueType) -> Read:
    name, get = field.name, attrgetter(field.name)
    default = field.GetOptions().Extensions[options.argument].default
    if field.enum_type is not None:
        return _enum(get, hint, field.enum_type, default)
    if field.message_type is not None:
        return _VALUES[brings](name) if field.message_type.name == "Value" else _spec(name)
    if field.is_repeated:
        return lambda request: tuple(get(request))
    if not field.has_presence:
        return get
    absent = int(default) if default else None
    return lambda request: get(request) if request.HasField(name) else absent


def _enum(get: Read, kind: type[Enum], wire_kind: EnumDescriptor, default: str) -> Read:
    # The names of both are the same, after the wire's prefix; 0 is the default.
    prefix = wire_kind.values_by_number[0].name.removesuffix("UNSPECIFIED")
    members = {it.number: kind[it.name.removeprefix(prefix)] for it in wire_kind.values if it.number}
    members[0] = kind[default.upper()]

    def read(request: Any) -> Enum:
        number = get(request)
        if (found := members.get(number)) is None:
            words, known = prefix.replace("_", " ").strip().lower(), ", ".join(it.value for it in kind)
            raise invalid(f"unknown {words}", expected=known, got=f"number {number}")
        return found

    return read


def _spec(name: str) -> Read:
    return lambda request: wire.tensor_spec(getattr(request, name), "") if request.HasField(name) else None


def _always(convert: Read) -> Callable[[str], Read]:
    return lambda name: lambda request: convert(getattr(request, name))


def _at_source(convert: Callable[[str, Any], Any]) -> Callable[[str], Read]:
    def of(name: str) -> Read:
        get = attrgetter(name)
        return lambda request: convert(name, get(request)) if values.is_given(get(request)) else None

    return of


def _source_value(name: str) -> Read:
    # None is a value too.
    return lambda request: values.packed(getattr(request, name)) if request.HasField(name) else None


_VALUES: dict[options.Brings.ValueType, Callable[[str], Read]] = {
    options.BRINGS_VALUE: _always(values.packed),
    options.BRINGS_NUMBER: _always(values.number),
    options.BRINGS_DICT: _always(values.given_dict),
    options.BRINGS_SOURCE_VALUE: _source_value,
    options.BRINGS_SOURCE_VALUES: _at_source(values.packed_items),
    options.BRINGS_SOURCE_DICT: _at_source(lambda _, value: values.given_dict(value)),
}
"""By what is brought: how a field with a value is read, of its name."""
