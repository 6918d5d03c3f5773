"""Files of the format safetensors, right ones and wrong ones."""

from __future__ import annotations

import json
import struct
from pathlib import Path
from typing import Any

import pytest

from rankbridge import Tensor
from rankbridge.harness.safetensors import MOST_HEADER_BYTES, read, write


def file_of(path: Path, header: Any, data: bytes = b"", length: int | None = None) -> Path:
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text) if length is None else length) + text + data)
    return path


def test_a_file_as_the_format_describes_it_is_read(tmp_path: Path) -> None:
    header = {
        "__metadata__": {"format": "pt"},
        "half": {"dtype": "BF16", "shape": [2, 1], "data_offsets": [4, 8]},
        "none": {"dtype": "F64", "shape": [0, 3], "data_offsets": [8, 8]},
        "one": {"dtype": "I32", "shape": [], "data_offsets": [0, 4]},
    }
    data = struct.pack("<i", -7) + bytes.fromhex("803f0040")
    path = file_of(tmp_path / "it.safetensors", json.dumps(header).encode() + b"   ", data)
    half, one, none = (read(path, it) for it in ("half", "one", "none"))
    assert (half.dtype, half.shape, bytes(half.data)) == ("bfloat16", (2, 1), bytes.fromhex("803f0040"))
    assert (one.dtype, one.shape, one.numpy().tolist()) == ("int32", (), -7)
    assert (none.dtype, none.shape) == ("float64", (0, 3))


def test_what_is_written_is_aligned_and_read_again(tmp_path: Path) -> None:
    given = {
        "layer.0": Tensor("float8_e4m3fn", (3,), b"abc"),
        "é": Tensor("bool", (2,), b"\x01\x00"),
        "c": Tensor("complex64", (1,), b"12345678"),
    }
    path = tmp_path / "it.safetensors"
    write(path, given)
    (length,) = struct.unpack("<Q", path.read_bytes()[:8])
    assert length % 8 == 0
    for name, tensor in given.items():
        again = read(path, name)
        assert (again.dtype, again.shape, bytes(again.data)) == (
            *(tensor.dtype, tensor.shape),
            bytes(tensor.data),
        )
    with pytest.raises(ValueError, match="safetensors has no complex128"):
        write(path, {"x": Tensor("complex128", (1,), bytes(16))})


ONE = {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}


@pytest.mark.parametrize(
    ("header", "length", "said"),
    [
        ({"x": ONE}, None, "it.safetensors: x ends at byte 77 of 73: the file is cut off"),
        ({"x": ONE, "y": ONE}, None, "has 2 tensors: name one as `tensor`: x, y"),
        ({}, None, "has 0 tensors"),
        ({"x": {**ONE, "shape": [3]}}, None, "x needs 12 bytes, and has 8"),
        ({"x": {**ONE, "shape": [1 << 61, 1 << 61]}}, None, "bytes, and has 8"),
        ({"x": {**ONE, "shape": [-2]}}, None, "no sizes in shape"),
        ({"x": {**ONE, "shape": [1 << 60] * 100_000}}, None, "no sizes in shape"),
        ({"x": {**ONE, "shape": [True, 2]}}, None, "no sizes in shape"),
        ({"x": {**ONE, "data_offsets": [8, 0]}}, None, "no begin and end in data_offsets"),
        ({"x": {**ONE, "dtype": "F4"}}, None, "has the dtype 'F4', which there is not here"),
        ({"x": {"dtype": "F32"}}, None, "is not described by dtype, shape and data_offsets"),
        ({"x": 1}, None, "is not described by"),
        ([1], None, "its header is no object"),
        (b'{"x": 1, "x": 2}', None, "a name stands twice"),
        (b"[" * 100_000, None, "its header is no JSON"),
        (b"\xff", None, "its header is no JSON"),
        (b"{}", 1 << 63, f"a header of {1 << 63:,} bytes; at most {MOST_HEADER_BYTES:,}"),
        (b"{}", 100, "a header of 100 bytes; the file has 14"),
    ],
)
def test_a_file_that_is_wrong_is_refused_and_says_why(
    tmp_path: Path, header: Any, length: int | None, said: str
) -> None:
    path = file_of(tmp_path / "it.safetensors", header, b"1234", length)
    with pytest.raises(ValueError, match=r"it\.safetensors") as caught:
        read(path, None)
    assert said in str(caught.value)


def test_a_file_of_a_few_bytes_is_none(tmp_path: Path) -> None:
    (tmp_path / "it").write_bytes(b"1234567")
    with pytest.raises(ValueError, match="it is no safetensors file: it has 7 bytes"):
        read(tmp_path / "it", None)
