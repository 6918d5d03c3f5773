"""Writes the shared vectors: `python -m tests.vectors.generate`. Everywhere the same files.

`messages.jsonl`: lines `{"message", "bytes", "fields"}`: bytes (base64) of a message and its plain form
(`tests/vectors/plain.py`). Decoding the bytes gives the fields, encoding the fields gives the bytes.

`malformed.jsonl`: lines `{"message", "bytes", "why"}`: bytes that no decoder may take.

`noncanonical.jsonl`: lines `{"message", "bytes", "fields", "canonical", "why"}`: bytes that every decoder
must take, though no encoder writes them, and what an encoder writes.

`dtypes.jsonl`: see `tests/vectors/dtypes.py`.
"""

import base64
import json
import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from tests.vectors import dtypes
from tests.vectors.messages import CLASSES, random_message
from tests.vectors.plain import to_plain

FOLDER = Path(__file__).parent
SEED = 20260101
ROUNDS = 6

Line = dict[str, Any]

MALFORMED: list[tuple[str, bytes, str]] = [
    ("Call", b"\x0a", "ends before the length"),
    ("Call", b"\x0a\x05ab", "ends inside text"),
    ("Call", b"\x18", "ends before a varint"),
    ("Call", b"\x18\x80", "ends inside a varint"),
    ("Call", b"\x18" + b"\xff" * 10 + b"\x01", "varint of eleven bytes"),
    ("Call", b"\x0a\x01\xff", "text that is not UTF-8"),
    ("Call", b"\x0a\x03\xed\xa0\x80", "text with a surrogate"),
    ("Call", b"\x02\x00", "field number 0"),
    ("Call", b"\x0e", "wire type 6"),
    ("Call", b"\x0f", "wire type 7"),
    ("Call", b"\x0c", "end of a group without its start"),
    ("Call", b"\xa3\x06\x08\x01", "group without end"),
    ("Call", b"\xa3\x06\xac\x06", "group with another one's end"),
    ("Call", b"\xa1\x06\x01\x02", "ends inside 8 bytes"),
    ("Call", b"\xa5\x06\x01\x02", "ends inside 4 bytes"),
    ("Arange", b"\x09\x00\x00", "ends inside a double"),
    ("Group", b"\x12\x02\x01\x80", "packed list that ends inside a varint"),
    ("BarrierRequest", b"\x0a\x02\x0a\x05", "sub-message that ends too early"),
    ("ListValue", b"", "nested 101 deep"),
]

NONCANONICAL: list[tuple[str, bytes, str]] = [
    ("Call", b"\x18\x81\x00", "varint longer than needed"),
    ("Call", b"\x18\xff\xff\xff\xff\xff\x01", "uint32 with more than 32 bits"),
    ("Call", b"\x18\x05\x0a\x02tp", "fields out of order"),
    ("Call", b"\x0a\x01a\x0a\x01b", "the same field twice: the last one counts"),
    ("Call", b"\x0a\x00\x18\x00", "defaults written"),
    ("Group", b"\x10\x03\x12\x02\x01\x02\x10\x07", "list packed and unpacked in turn"),
    ("BarrierRequest", b"\x0a\x03\x0a\x01g\x0a\x02\x18\x07", "a sub-message twice: merged"),
    ("Value", b"\x18\x02\x10\x01", "a oneof twice: the last one counts"),
    ("Value", b"\x42\x04\x0a\x02\x18\x02\x42\x04\x0a\x02\x18\x04", "a oneof's sub-message twice: merged"),
    ("Value", b"\x42\x04\x0a\x02\x18\x02\x18\x02\x42\x04\x0a\x02\x18\x04", "not merged across another one"),
    ("Value", b"\x10\x05", "a bool of 5 is true"),
    ("AllReduceRequest", b"\x18\x05\x12\x01r", "enum before text"),
    ("AllReduceRequest", b"\x18\x85\x80\x80\x80\x10", "enum with more than 32 bits"),
    ("Call", b"\xa0\x06\x96\x01\x0a\x01g", "unknown varint first"),
    (
        "Call",
        b"\xa2\x06\x03abc\xa5\x06\x01\x02\x03\x04\xa1\x06\x01\x02\x03\x04\x05\x06\x07\x08",
        "unknown fields",
    ),
    ("Call", b"\xa3\x06\x08\x01\x1b\x1c\xa4\x06", "unknown group with a group inside"),
    ("Call", b"\x08\x01\x12\x01i", "known number of another wire type: unknown field"),
    ("Error", b"\x62\x02\x08\x01\x62\x02\x08\x02\xa0\x06\x01", "list of sub-messages, then an unknown field"),
    ("ListValue", b"", "nested 100 deep"),
]


def nested_lists(levels: int) -> bytes:
    """A ListValue around `levels` messages, one inside the other: Value and ListValue in turn."""
    inner = b""
    for level in range(levels):
        in_list = (levels - level) % 2 == 1
        tag = b"\x0a" if in_list else b"\x42"
        inner = tag + varint(len(inner)) + inner
    return inner


def varint(value: int) -> bytes:
    """The varint of a whole number."""
    head = b""
    while value > 0x7F:
        head += bytes([value & 0x7F | 0x80])
        value >>= 7
    return head + bytes([value])


def message_lines() -> Iterator[Line]:
    """Some random messages of every kind."""
    rng = random.Random(SEED)
    for _ in range(ROUNDS):
        for name in sorted(CLASSES):
            message = random_message(rng, name, depth=3)
            yield {
                "message": name,
                "bytes": _base64(message.SerializeToString(deterministic=True)),
                "fields": to_plain(message),
            }


def malformed_lines() -> Iterator[Line]:
    """What no decoder may take."""
    for name, data, why in MALFORMED:
        yield {"message": name, "bytes": _base64(data or nested_lists(101)), "why": why}


def noncanonical_lines() -> Iterator[Line]:
    """What every decoder must take."""
    for name, data, why in NONCANONICAL:
        encoded = data or nested_lists(100)
        message = CLASSES[name].FromString(encoded)
        yield {
            "message": name,
            "bytes": _base64(encoded),
            "fields": to_plain(message),
            "canonical": _base64(message.SerializeToString(deterministic=True)),
            "why": why,
        }


FILES: dict[str, Callable[[], Iterator[Line]]] = {
    "messages.jsonl": message_lines,
    "malformed.jsonl": malformed_lines,
    "noncanonical.jsonl": noncanonical_lines,
    "dtypes.jsonl": dtypes.lines,
}


def text_of(name: str) -> str:
    """What the file of that name must hold."""
    return "".join(json.dumps(line, ensure_ascii=True) + "\n" for line in FILES[name]())


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode()


def main() -> None:
    """Writes every file."""
    for name in FILES:
        (FOLDER / name).write_text(text_of(name), encoding="ascii")


if __name__ == "__main__":
    main()
