"""Tensor elements as the chunk messages of PutTensor and GetTensor, with one copy each way.

protobuf's own classes would copy every chunk into a message and the message into its serialization. The one
field concerned is written and read by hand here; every other message goes through protobuf.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Generic, TypeVar

import numpy as np

from rankbridge._plan.dtypes import dtype_from_wire
from rankbridge._plan.failures import error_from_wire
from rankbridge._plan.tensor import Tensor
from rankbridge.errors import ProtocolError
from rankbridge.v1 import ref_service_pb2 as pb, tensor_pb2

T = TypeVar("T")

CHUNK_BYTES = 1 << 20
"""Bytes of elements in one message: measured as fast, and below gRPC's usual limit of 4 MiB."""

# Field 2 (`chunk` of both messages), wire type 2 (length-delimited).
_TAG = 0x12


def put_messages(header: pb.PutTensorHeader, tensor: Tensor) -> Iterator[bytes]:
    """Gives the serialized messages of one put: the header, then the elements."""
    yield pb.PutTensorRequest(header=header).SerializeToString()
    data = tensor.data
    for start in range(0, data.nbytes, CHUNK_BYTES):
        yield chunk_message(data[start : start + CHUNK_BYTES])


def chunk_message(chunk: memoryview) -> bytes:
    """Serializes a message that holds one chunk: a single allocation and copy."""
    prefix = bytearray((_TAG,))
    length = chunk.nbytes
    while length > 0x7F:
        prefix.append(length & 0x7F | 0x80)
        length >>= 7
    prefix.append(length)
    return b"".join((prefix, chunk))


def chunk_of(message: bytes) -> memoryview | None:
    """Gives the bytes of a message that holds one chunk and nothing else, without a copy.

    Returns:
        A view into the message. None: it is some other message, which protobuf should parse.
    """
    if not message or message[0] != _TAG:
        return None
    length = shift = 0
    for place, byte in enumerate(message[1:11], start=2):
        length |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            return memoryview(message)[place:] if place + length == len(message) else None
    return None


class TensorReader(Generic[T]):
    """Collects the messages of one GetTensor into one buffer."""

    def __init__(self, convert: Callable[[Tensor], T]) -> None:
        """Begins a fetch; `convert` makes the result of the complete tensor."""
        self._convert = convert
        self._spec: tensor_pb2.TensorSpec | None = None
        self._buffer = np.empty(0, np.uint8)
        self._filled = 0

    def feed(self, message: bytes) -> None:
        """Takes the next message.

        Raises:
            RankBridgeError: The message says so.
            ProtocolError: It is out of place, or its bytes do not fit into the tensor.
            DecodeError: It is no message at all.
        """
        chunk = chunk_of(message)
        if chunk is None:
            part = pb.GetTensorResponse.FromString(message)
            match part.WhichOneof("part"):
                case "tensor":
                    self._begin(part.tensor)
                    return
                case "chunk":
                    chunk = memoryview(part.chunk)
                case "error":
                    raise error_from_wire(part.error)
                case None:
                    raise ProtocolError("a fetch's message with nothing set")
        end = self._filled + chunk.nbytes
        if self._spec is None or end > self._buffer.nbytes:
            raise ProtocolError(
                "a fetch brought bytes beyond its tensor",
                expected=f"{self._buffer.nbytes} bytes",
                got=f"{end} bytes",
            )
        self._buffer[self._filled : end] = np.frombuffer(chunk, np.uint8)
        self._filled = end

    def finish(self) -> T:
        """Gives the result.

        Raises:
            ProtocolError: The stream ended before the tensor was complete.
        """
        if self._spec is None or self._filled < self._buffer.nbytes:
            raise ProtocolError(
                "a fetch ended early", expected=f"{self._buffer.nbytes} bytes", got=f"{self._filled} bytes"
            )
        name = dtype_from_wire(self._spec.dtype).name
        return self._convert(Tensor(name, tuple(self._spec.shape), self._buffer))

    def _begin(self, spec: tensor_pb2.TensorSpec) -> None:
        if self._spec is not None:
            raise ProtocolError("a fetch began twice")
        if any(size < 0 for size in spec.shape):
            raise ProtocolError("a tensor has a negative size", got=str(list(spec.shape)))
        self._buffer = np.empty(math.prod(spec.shape) * dtype_from_wire(spec.dtype).itemsize, np.uint8)
        self._spec = spec
