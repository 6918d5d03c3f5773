"""Random messages of any type, by its descriptor: plausible here, wrong there, and some of them broken as bytes."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from typing import Any

from google.protobuf.descriptor import FieldDescriptor as Field
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass

DEPTH = 5
_WHOLE = [0, 1, 2, 3, 4, 7, 64, 1000, 2**31 - 1]
_SIGNED = [*_WHOLE, -1, -2, -(2**31)]
_RANGES = {
    Field.TYPE_INT32: _SIGNED,
    Field.TYPE_SINT32: _SIGNED,
    Field.TYPE_SFIXED32: _SIGNED,
    Field.TYPE_INT64: [*_SIGNED, 2**63 - 1, -(2**63)],
    Field.TYPE_SINT64: [*_SIGNED, 2**63 - 1, -(2**63)],
    Field.TYPE_SFIXED64: [*_SIGNED, 2**63 - 1, -(2**63)],
    Field.TYPE_UINT32: [*_WHOLE, 2**32 - 1],
    Field.TYPE_FIXED32: [*_WHOLE, 2**32 - 1],
    Field.TYPE_UINT64: [*_WHOLE, 2**64 - 1],
    Field.TYPE_FIXED64: [*_WHOLE, 2**64 - 1],
}
_FLOATS = [0.0, 1.0, -1.5, 1e300, math.inf, -math.inf, math.nan]
_TEXTS = ["", "world", "fuzz", "none", "\x1b[31m", "ä\u202e", "~own/", "a" * 200, "0.0.1", "x" * 5000]
TIMEOUTS_MS = [1, 20, 100]
"""A call that waits for others ends in so long."""


class Messages:
    """Makes messages. `refs`: ids of refs that exist."""

    def __init__(self, seed: int, refs: Sequence[str] = ()) -> None:
        self._random = random.Random(seed)
        self._refs = list(refs)

    def message(self, descriptor: Any, depth: int = 0) -> Message:
        """A message with some of its fields."""
        made: Message = GetMessageClass(descriptor)()
        fields = [it for it in descriptor.fields if it.containing_oneof is None]
        # At most one of each, most often one.
        fields += [self._random.choice(it.fields) for it in descriptor.oneofs if self._random.random() < 0.95]
        for field in fields:
            if field.name in ("call", "timeout_ms") or self._random.random() < 0.7:
                self._fill(made, field, depth)
        return made

    def broken(self, message: Message) -> bytes:
        """The bytes of a message, cut off, changed, repeated, or with fields that nobody knows."""
        data = bytearray(message.SerializeToString())
        kind = self._random.randrange(5)
        if kind == 0:
            del data[self._random.randrange(len(data) + 1) :]
        elif kind == 1 and data:
            for _ in range(self._random.randrange(1, 4)):
                data[self._random.randrange(len(data))] = self._random.randrange(256)
        elif kind == 2:
            data += bytes(data)
        elif kind == 3:
            data += b"\xfa\x7f\x03abc" + b"\x98\x7f" + b"\xff" * 9 + b"\x01"
        else:
            data += self._random.randbytes(20)
        return bytes(data)

    def any_bytes(self, descriptor: Any) -> bytes:
        """A message of a type, whole three times in four."""
        made = self.message(descriptor)
        return self.broken(made) if self._random.random() < 0.25 else made.SerializeToString()

    def _fill(self, made: Message, field: Any, depth: int) -> None:
        count = self._random.choice([0, 1, 1, 2, 3, 20]) if field.is_repeated else 1
        if field.type == Field.TYPE_MESSAGE:
            if depth >= DEPTH:
                return
            if field.message_type.GetOptions().map_entry:
                return
            for _ in range(count):
                value = self.message(field.message_type, depth + 1)
                target = getattr(made, field.name)
                (target.add() if field.is_repeated else target).CopyFrom(value)
        elif field.is_repeated:
            getattr(made, field.name).extend(self._scalar(field) for _ in range(count))
        else:
            setattr(made, field.name, self._scalar(field))

    def _scalar(self, field: Any) -> Any:
        if field.name == "timeout_ms":
            return self._random.choice(TIMEOUTS_MS)
        if field.type == Field.TYPE_STRING:
            if "ref_id" in field.name and self._refs and self._random.random() < 0.8:
                return self._random.choice(self._refs)
            # Of the first most calls are possible.
            return self._random.choice(["", "", "", *_TEXTS])
        if field.type == Field.TYPE_BYTES:
            return self._random.randbytes(self._random.choice([0, 1, 4, 100, 5000]))
        if field.type == Field.TYPE_BOOL:
            return self._random.random() < 0.5
        if field.type in (Field.TYPE_DOUBLE, Field.TYPE_FLOAT):
            return self._random.choice(_FLOATS)
        if field.type == Field.TYPE_ENUM:
            known = [it.number for it in field.enum_type.values]
            return self._random.choice([*known, *known, 99])
        small = self._random.random() < 0.6
        return self._random.choice(_WHOLE[:5] if small else _RANGES[field.type])
