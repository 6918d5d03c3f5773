from __future__ import annotations

import subprocess
import sys
from typing import Any

import hypothesis.extra.numpy as hnp
import numpy as np
import pytest
from hypothesis import given, strategies as st

from rankbridge import InvalidArgumentError, Tensor, UnsupportedDtypeError
from rankbridge._plan.dtypes import DTYPES, dtype_from_wire, dtype_of
from rankbridge._plan.tensor import as_tensor
from rankbridge.errors import ProtocolError
from rankbridge.v1 import dtype_pb2

NUMPY_DTYPES = [dtype.numpy for dtype in DTYPES.values() if dtype.numpy is not None]


@st.composite
def arrays_of_any_layout(draw: st.DrawFn) -> np.ndarray[Any, Any]:
    """Arrays of every dtype that can travel, with either byte order, sliced and transposed at will."""
    dtype = draw(st.sampled_from(NUMPY_DTYPES)).newbyteorder(draw(st.sampled_from("<>")))
    shape = draw(hnp.array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=5))
    array: np.ndarray[Any, Any] = draw(hnp.arrays(dtype, shape))
    for axis in range(array.ndim):
        step = draw(st.sampled_from([1, 2, -1, -2]))
        array = array[(slice(None),) * axis + (slice(None, None, step),)]
    return array.transpose(draw(st.permutations(range(array.ndim))))


@given(arrays_of_any_layout())
def test_arrays_travel_as_little_endian_rows_whatever_their_layout(array: np.ndarray[Any, Any]) -> None:
    tensor = as_tensor(array)
    assert bytes(tensor.data) == array.astype(array.dtype.newbyteorder("<")).tobytes()
    back = tensor.numpy()
    assert back.dtype.isnative
    assert back.shape == array.shape
    assert back.tobytes() == array.astype(array.dtype.newbyteorder("=")).tobytes()


def test_a_contiguous_array_is_not_copied() -> None:
    array = np.arange(6, dtype=np.float32).reshape(2, 3)
    tensor = as_tensor(array)
    assert np.shares_memory(array, np.frombuffer(tensor.data, np.uint8))
    assert np.shares_memory(array, tensor.numpy())


@pytest.mark.parametrize(
    ("value", "dtype", "shape"),
    [(1, "int64", ()), (1.5, "float64", ()), ([[True]], "bool", (1, 1)), ([], "float64", (0,))],
)
def test_numbers_and_lists_become_what_numpy_makes_of_them(
    value: Any, dtype: str, shape: tuple[int, ...]
) -> None:
    tensor = as_tensor(value)
    assert (tensor.dtype, tensor.shape) == (dtype, shape)


@pytest.mark.parametrize("value", ["text", object(), None, np.array("2026", "M8[Y]"), {"a": 1}])
def test_what_has_no_dtype_of_ours_is_refused(value: Any) -> None:
    with pytest.raises(UnsupportedDtypeError):
        as_tensor(value)


def test_ragged_lists_are_refused() -> None:
    with pytest.raises(InvalidArgumentError, match="no tensor"):
        as_tensor([[1], [1, 2]])


@pytest.mark.parametrize("shape", [(2, 3), (5,), (), (-1, -4), (2.0, 2), "ab"])
def test_bytes_that_do_not_fill_the_shape_are_refused(shape: Any) -> None:
    with pytest.raises(InvalidArgumentError):
        Tensor("float32", shape, bytes(16))


def test_strided_bytes_are_refused() -> None:
    with pytest.raises(InvalidArgumentError, match="contiguous"):
        Tensor("uint8", (2,), memoryview(b"abcd")[::2])
    with pytest.raises(InvalidArgumentError, match="contiguous"):
        Tensor("uint8", (2,), np.zeros(4, np.uint8)[::2])


def test_dtypes_that_numpy_lacks_say_what_to_do_instead() -> None:
    tensor = Tensor("bfloat16", (2,), b"\x80\x3f\x00\x40")
    with pytest.raises(UnsupportedDtypeError, match=r"view_uint\(\)"):
        tensor.numpy()
    assert tensor.view_uint().tolist() == [0x3F80, 0x4000]
    assert Tensor("complex32", (), b"abcd").view_uint().dtype == np.uint32
    with pytest.raises(UnsupportedDtypeError):
        Tensor("complex128", (), bytes(16)).view_uint()


def test_tensors_are_equal_bit_for_bit() -> None:
    nan = Tensor("float32", (1,), b"\x00\x00\xc0\x7f")
    assert nan == Tensor("float32", (1,), bytearray(b"\x00\x00\xc0\x7f"))
    assert nan != Tensor("int32", (1,), nan.data)
    assert nan != Tensor("float32", (), nan.data)
    assert Tensor("float32", (), np.float32(0).tobytes()) != Tensor("float32", (), np.float32(-0.0).tobytes())
    assert nan != "nan"
    assert repr(nan) == "Tensor(float32[1], 4 bytes)"


def test_every_dtype_of_the_wire_is_known_by_its_name_and_code() -> None:
    named = {name.removeprefix("DTYPE_").lower(): code for name, code in dtype_pb2.Dtype.items() if code}
    assert {dtype.name: dtype.code for dtype in DTYPES.values()} == named
    for dtype in DTYPES.values():
        assert dtype_from_wire(dtype.code) is dtype
        assert dtype_of(dtype.name) is dtype
    for code in (0, 4711):
        with pytest.raises(ProtocolError):
            dtype_from_wire(code)


@pytest.mark.parametrize("named", ["float", "float128", "", None, "torch.", int, "M8[s]", "V2"])
def test_only_names_that_mean_one_dtype_are_understood(named: Any) -> None:
    known = {"float": "float64", int: "int64"}.get(named)
    if known is None:
        with pytest.raises(UnsupportedDtypeError):
            dtype_of(named)
    else:
        assert dtype_of(named).name == known


def test_torch_is_not_imported_by_the_client() -> None:
    program = "import sys, rankbridge; rankbridge.Tensor('bool', (), b'1').numpy(); sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0
