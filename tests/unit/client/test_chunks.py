from __future__ import annotations

import itertools

import numpy as np
import pytest
from google.protobuf.message import DecodeError
from hypothesis import given, strategies as st

from rankbridge import ProtocolError, Tensor, UnknownRefError
from rankbridge._plan.chunks import CHUNK_BYTES, TensorReader, chunk_message, chunk_of, put_messages
from rankbridge.v1 import dtype_pb2, error_pb2, ref_service_pb2 as pb, tensor_pb2

sizes = st.sampled_from([0, 1, 127, 128, 129, 16383, 16384, CHUNK_BYTES - 1, CHUNK_BYTES])


@given(st.binary() | sizes.map(bytes))
def test_a_chunk_written_by_hand_is_what_protobuf_writes(data: bytes) -> None:
    assert chunk_message(memoryview(data)) == pb.PutTensorRequest(chunk=data).SerializeToString()


@given(st.binary() | sizes.map(bytes))
def test_a_chunk_read_by_hand_is_what_protobuf_wrote(data: bytes) -> None:
    read = chunk_of(pb.GetTensorResponse(chunk=data).SerializeToString())
    assert read is not None
    assert bytes(read) == data


@given(st.binary(max_size=40))
def test_reading_by_hand_agrees_with_protobuf_on_any_bytes(message: bytes) -> None:
    read = chunk_of(message)
    if read is not None:
        parsed = pb.GetTensorResponse.FromString(message)
        assert parsed.WhichOneof("part") == "chunk"
        assert parsed.chunk == bytes(read)


@pytest.mark.parametrize("count", [0, 1, CHUNK_BYTES, CHUNK_BYTES + 1, 3 * CHUNK_BYTES])
def test_a_put_is_a_header_and_chunks_of_at_most_a_mebibyte(count: int) -> None:
    data = np.arange(count, dtype=np.uint8)
    header = pb.PutTensorHeader(session_id="s")
    first, *rest = put_messages(header, Tensor("uint8", (count,), data))
    assert pb.PutTensorRequest.FromString(first).header == header
    chunks = [pb.PutTensorRequest.FromString(message).chunk for message in rest]
    assert b"".join(chunks) == data.tobytes()
    assert all(0 < len(chunk) <= CHUNK_BYTES for chunk in chunks)


def _reader() -> TensorReader[Tensor]:
    return TensorReader(lambda tensor: tensor)


def _spec(*shape: int) -> bytes:
    spec = tensor_pb2.TensorSpec(dtype=dtype_pb2.DTYPE_UINT32, shape=shape)
    return pb.GetTensorResponse(tensor=spec).SerializeToString()


def _chunk(data: bytes) -> bytes:
    return pb.GetTensorResponse(chunk=data).SerializeToString()


@given(st.lists(st.integers(0, 12), max_size=4))
def test_chunks_may_end_anywhere(cuts: list[int]) -> None:
    data = bytes(range(12))
    reader = _reader()
    reader.feed(_spec(3))
    for start, end in itertools.pairwise([0, *sorted(cuts), 12]):
        reader.feed(_chunk(data[start:end]))
    assert reader.finish() == Tensor("uint32", (3,), data)


def test_a_chunk_in_an_unusual_encoding_is_read_all_the_same() -> None:
    reader = _reader()
    reader.feed(_spec(2))
    reader.feed(b"\x12\x84\x00abcd")
    reader.feed(_chunk(b"????") + _chunk(b"efgh"))
    assert bytes(reader.finish().data) == b"abcdefgh"


def test_an_error_in_a_fetch_is_raised() -> None:
    error = error_pb2.Error(code=error_pb2.ERROR_CODE_UNKNOWN_REF, message="no ref")
    with pytest.raises(UnknownRefError, match="no ref"):
        _reader().feed(pb.GetTensorResponse(error=error).SerializeToString())


@pytest.mark.parametrize(
    "messages",
    [
        [],
        [_spec(2)],
        [_spec(2), _chunk(b"1234567")],
        [_spec(2), _chunk(b"123456789")],
        [_spec(2), _spec(2)],
        [_spec(-2)],
        [_chunk(b"1234")],
        [_chunk(b"")],
        [b""],
        [pb.GetTensorResponse(tensor=tensor_pb2.TensorSpec()).SerializeToString()],
    ],
)
def test_fetches_that_do_not_add_up_are_protocol_errors(messages: list[bytes]) -> None:
    reader = _reader()
    with pytest.raises(ProtocolError):  # noqa: PT012
        for message in messages:
            reader.feed(message)
        reader.finish()


def test_garbage_in_a_fetch_is_no_message() -> None:
    with pytest.raises(DecodeError):
        _reader().feed(b"\xff\xff\xff")
