"""Tensor streams encoded by hand are what protobuf would have made."""

from __future__ import annotations

import pytest
from google.protobuf.message import DecodeError
from hypothesis import given, strategies as st

from rankbridge.v1 import ref_service_pb2 as pb
from rankbridge_server.service.refs.chunks import CHUNK_BYTES, encoded_chunks, parse_put, serialize_get


@pytest.mark.parametrize("length", [1, 127, 128, 16383, 16384, CHUNK_BYTES - 1, CHUNK_BYTES])
def test_a_chunk_is_encoded_as_protobuf_encodes_it(length: int) -> None:
    data = bytes(length)
    (encoded,) = encoded_chunks(memoryview(data))
    assert encoded == pb.GetTensorResponse(chunk=data).SerializeToString()
    assert serialize_get(encoded) is encoded


def test_data_is_cut_into_chunks_that_join_again() -> None:
    data = bytes(range(256)) * (CHUNK_BYTES // 128) + b"rest"
    chunks = [pb.GetTensorResponse.FromString(it).chunk for it in encoded_chunks(memoryview(data))]
    assert [len(chunk) for chunk in chunks] == [CHUNK_BYTES, CHUNK_BYTES, 4]
    assert b"".join(chunks) == data


def test_no_data_makes_no_chunk() -> None:
    assert list(encoded_chunks(memoryview(b""))) == []


@given(st.binary(min_size=1, max_size=300))
def test_a_chunk_is_parsed_in_place(data: bytes) -> None:
    parsed = parse_put(pb.PutTensorRequest(chunk=data).SerializeToString())
    assert isinstance(parsed, memoryview)
    assert bytes(parsed) == data


@given(st.binary(max_size=40))
def test_any_bytes_are_parsed_as_protobuf_parses_them(data: bytes) -> None:
    try:
        expected = pb.PutTensorRequest.FromString(data)
    except DecodeError:
        with pytest.raises(DecodeError):
            parse_put(data)
        return
    parsed = parse_put(data)
    chunk = bytes(parsed) if isinstance(parsed, memoryview) else parsed.chunk
    assert chunk == expected.chunk
    if not isinstance(parsed, memoryview):
        assert parsed == expected


def test_a_header_is_parsed_by_protobuf() -> None:
    header = pb.PutTensorRequest(header=pb.PutTensorHeader(session_id="s"))
    assert parse_put(header.SerializeToString()) == header
