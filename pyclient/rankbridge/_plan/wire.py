"""What Python's names and protobuf's have in common: fields of messages, values of enums."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable
from typing import Any

from google.protobuf.descriptor import EnumDescriptor
from google.protobuf.message import Message

from rankbridge.errors import InvalidArgumentError


def fields_of(cls: type[Any], message: Message) -> dict[str, Any]:
    """Gives the fields of a dataclass that a message has by the same names: numbers, texts, and tuples of them.

    An optional one that is not set is None. Enums and messages are not given.
    """
    values: dict[str, Any] = {}
    for it in dataclasses.fields(cls):
        field = message.DESCRIPTOR.fields_by_name.get(it.name)
        if field is None or field.enum_type is not None or field.message_type is not None:
            continue
        value = getattr(message, it.name)
        if field.is_repeated:
            values[it.name] = tuple(value)
        else:
            values[it.name] = None if field.has_presence and not message.HasField(it.name) else value
    return values


def short_name(enum: Iterable[tuple[str, int]], number: int) -> str:
    """Names an enum's value: "PHASE_DATA" of Phase is "data"; a number of a newer protocol is "unspecified"."""
    names: dict[int, str] = {value: name for name, value in enum}
    return names.get(number, names[0]).removeprefix(names[0].removesuffix("UNSPECIFIED")).lower()


def number_of(enum: EnumDescriptor, operation: str) -> Callable[[str], Any]:
    """Makes what gives an enum's number of its short name, the inverse of `short_name`.

    It raises ``InvalidArgumentError`` for an operation where there is no such name.
    """
    prefix = enum.values_by_number[0].name.removesuffix("UNSPECIFIED")
    numbers = {it.name.removeprefix(prefix).lower(): it.number for it in enum.values if it.number}

    def number(name: str) -> Any:
        if name not in numbers:
            words = prefix.replace("_", " ").strip().lower()
            raise InvalidArgumentError(
                f"there is no such {words}",
                operation=operation,
                expected=f"one of {', '.join(numbers)}",
                got=str(name),
            )
        return numbers[name]

    return number
