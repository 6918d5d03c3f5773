"""Messages of tensor streams, encoded and decoded by hand to save a copy of each chunk.

`PutTensorRequest` and `GetTensorResponse` both carry a chunk as field 2, of type bytes.
"""

from __future__ import annotations

from collections.abc import Iterator

from google.protobuf.message import Message

from rankbridge.v1 import ref_service_pb2 as pb

CHUNK_BYTES = 1024 * 1024
_CHUNK_TAG = (2 << 3) | 2
# Lengths below 2**28 bytes, more than any message that is received here.
_MAX_LENGTH_BYTES = 4


def encoded_chunks(data: memoryview) -> Iterator[bytes]:
    """`data` as encoded messages of at most CHUNK_BYTES each."""
    for start in range(0, len(data), CHUNK_BYTES):
        part = data[start : start + CHUNK_BYTES]
        yield b"".join((bytes((_CHUNK_TAG,)), _varint(len(part)), part))


def serialize_get(message: Message | bytes) -> bytes:
    """Serializes a message of a get; a chunk is encoded already."""
    return message if isinstance(message, bytes) else message.SerializeToString()


def parse_put(data: bytes) -> pb.PutTensorRequest | memoryview:
    """Parses a message of a put: a chunk becomes a view of its bytes, anything else a message.

    Raises google.protobuf.message.DecodeError.
    """
    if data and data[0] == _CHUNK_TAG:
        start = _after_length(data)
        if start:
            return memoryview(data)[start:]
    return pb.PutTensorRequest.FromString(data)


PARSERS = {"rankbridge.v1.RefService.PutTensor": parse_put}
"""How the requests of these methods are parsed."""
SERIALIZERS = {"rankbridge.v1.RefService.GetTensor": serialize_get}
"""How the responses of these methods are serialized."""


def _varint(value: int) -> bytes:
    encoded = bytearray()
    while value > 0x7F:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    encoded.append(value)
    return bytes(encoded)


def _after_length(data: bytes) -> int:
    """The start of a chunk that fills the rest of `data`; 0 if the chunk's length is another."""
    length = 0
    for at in range(1, min(len(data), _MAX_LENGTH_BYTES + 1)):
        length |= (data[at] & 0x7F) << (7 * (at - 1))
        if data[at] < 0x80:
            return at + 1 if at + 1 + length == len(data) else 0
    return 0
