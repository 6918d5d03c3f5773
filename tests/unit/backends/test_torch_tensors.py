"""How tensors are made, read and written."""

from __future__ import annotations

import math
from typing import cast

import pytest
import torch

from rankbridge_server.backends import torch_tensors
from rankbridge_server.backends.torch_tensors import TORCH, TorchTensors
from rankbridge_server.core.dtype import Dtype
from rankbridge_server.core.errors import BridgeError, ErrorCode
from rankbridge_server.core.refs.tensors import Arange, Full, Init, Normal, TensorSpec, Uniform


def make(dtype: Dtype, init: Init, shape: tuple[int, ...] = (6,), device: str = "") -> torch.Tensor:
    return cast(torch.Tensor, TorchTensors().create(TensorSpec(dtype, shape, device), init))


@pytest.mark.filterwarnings("ignore:ComplexHalf support is experimental")
@pytest.mark.parametrize("dtype", list(Dtype))
def test_sizes_are_torchs(dtype: Dtype) -> None:
    assert dtype.itemsize == torch.empty(0, dtype=TORCH[dtype]).element_size()


@pytest.mark.parametrize("dtype", [it for it in Dtype if it is not Dtype.FLOAT8_E8M0FNU])
def test_zeros_are_all_bytes_zero(dtype: Dtype) -> None:
    assert bytes(TorchTensors().read(make(dtype, Full(0)))) == bytes(6 * dtype.itemsize)


@pytest.mark.parametrize("dtype", list(Dtype))
def test_bytes_written_are_bytes_read(dtype: Dtype) -> None:
    tensors = TorchTensors()
    tensor = tensors.empty(TensorSpec(dtype, (2, 3), "cpu"))
    data = bytes(at % 2 for at in range(6 * dtype.itemsize))
    tensors.write(tensor)[:] = data
    tensors.written(tensor)
    assert bytes(tensors.read(tensor)) == data


@pytest.mark.filterwarnings("ignore:ComplexHalf support is experimental")
@pytest.mark.parametrize("dtype", list(Dtype))
def test_adopted_memory_is_the_tensors(dtype: Dtype) -> None:
    tensors = TorchTensors()
    memory = bytearray(at % 2 for at in range(6 * dtype.itemsize))
    tensor = tensors.adopted(TensorSpec(dtype, (3, 2), ""), memoryview(memory))
    tensors.written(tensor)
    assert (cast(torch.Tensor, tensor).dtype, cast(torch.Tensor, tensor).shape) == (TORCH[dtype], (3, 2))
    memory[0] = 1
    assert bytes(tensors.read(tensor)) == memory


def test_adopted_memory_is_checked() -> None:
    tensors = TorchTensors()
    with pytest.raises(BridgeError, match="no such device"):
        tensors.adopted(TensorSpec(Dtype.BOOL, (1,), "cuda:9"), memoryview(bytearray(1)))
    tensor = tensors.adopted(TensorSpec(Dtype.BOOL, (1,), ""), memoryview(bytearray(b"\2")))
    with pytest.raises(BridgeError, match="neither 0 nor 1"):
        tensors.written(tensor)


def test_reading_lays_a_strided_tensor_out() -> None:
    tensor = torch.arange(6, dtype=torch.int8).reshape(2, 3).t()
    assert bytes(TorchTensors().read(tensor)) == bytes([0, 3, 1, 4, 2, 5])


def test_the_bytes_keep_the_tensor_alive() -> None:
    view = TorchTensors().read(torch.full((1000,), 7, dtype=torch.uint8))
    torch.zeros(1000, dtype=torch.uint8)
    assert bytes(view) == b"\x07" * 1000


def test_a_bool_that_is_neither_0_nor_1_is_refused() -> None:
    tensors = TorchTensors()
    tensor = tensors.empty(TensorSpec(Dtype.BOOL, (2,), "cpu"))
    tensors.write(tensor)[:] = b"\x01\x02"
    with pytest.raises(BridgeError) as error:
        tensors.written(tensor)
    assert error.value.failure.code is ErrorCode.INVALID_ARGUMENT


@pytest.mark.parametrize(
    ("dtype", "init", "expected"),
    [
        (Dtype.FLOAT32, Full(1.5), [1.5] * 6),
        (Dtype.INT64, Full(2**62), [2**62] * 6),
        (Dtype.BOOL, Full(True), [True] * 6),
        (Dtype.COMPLEX64, Full(2.0), [2 + 0j] * 6),
        (Dtype.INT16, Arange(10, -3), [10, 7, 4, 1, -2, -5]),
        (Dtype.UINT64, Arange(2.0**63, -(2.0**60)), [2**63 - at * 2**60 for at in range(6)]),
        (Dtype.UINT8, Arange(250, 1), [250, 251, 252, 253, 254, 255]),
        (Dtype.FLOAT16, Arange(0, 0.5), [0, 0.5, 1, 1.5, 2, 2.5]),
    ],
)
def test_elements_are_what_was_asked_for(dtype: Dtype, init: Init, expected: list[float]) -> None:
    assert make(dtype, init).tolist() == expected


def test_narrow_floats_are_rounded_as_torch_rounds() -> None:
    made = make(Dtype.FLOAT8_E4M3FN, Full(1.06))
    assert (
        made.view(torch.uint8).tolist()
        == torch.tensor([1.06] * 6).to(torch.float8_e4m3fn).view(torch.uint8).tolist()
    )


@pytest.mark.parametrize(
    ("init", "again"), [(Uniform(7, 0, 1), Uniform(7, 0, 1)), (Normal(7, 0, 1), Normal(7, 0, 1))]
)
def test_a_seed_repeats_its_elements(init: Init, again: Init) -> None:
    assert make(Dtype.FLOAT64, init).equal(make(Dtype.FLOAT64, again))


def test_random_elements_are_torchs_own_of_that_seed() -> None:
    expected = torch.empty(6).uniform_(-1, 1, generator=torch.Generator().manual_seed(3))
    assert make(Dtype.FLOAT32, Uniform(3, -1, 1)).equal(expected)


@pytest.mark.parametrize(
    ("dtype", "init", "code"),
    [
        (Dtype.INT8, Full(128), ErrorCode.INVALID_ARGUMENT),
        (Dtype.INT8, Full(0.5), ErrorCode.INVALID_ARGUMENT),
        (Dtype.BOOL, Full(2), ErrorCode.INVALID_ARGUMENT),
        (Dtype.FLOAT32, Uniform(1, -math.inf, 1), ErrorCode.INVALID_ARGUMENT),
        (Dtype.FLOAT32, Uniform(1, 0, math.inf), ErrorCode.INVALID_ARGUMENT),
        (Dtype.FLOAT32, Uniform(1, math.nan, 1), ErrorCode.INVALID_ARGUMENT),
        (Dtype.FLOAT32, Uniform(1, 0, 1e300), ErrorCode.INVALID_ARGUMENT),
        (Dtype.FLOAT32, Uniform(1, -3e38, 3e38), ErrorCode.INVALID_ARGUMENT),
        (Dtype.FLOAT16, Uniform(1, 0, 1e5), ErrorCode.INVALID_ARGUMENT),
        (Dtype.FLOAT64, Uniform(1, -1e308, 1e308), ErrorCode.INVALID_ARGUMENT),
        (Dtype.INT8, Arange(126, 1), ErrorCode.INVALID_ARGUMENT),
        (Dtype.INT32, Arange(0.5, 1), ErrorCode.INVALID_ARGUMENT),
        (Dtype.BOOL, Arange(0, 1), ErrorCode.UNSUPPORTED_DTYPE),
        (Dtype.COMPLEX64, Arange(0, 1), ErrorCode.UNSUPPORTED_DTYPE),
        (Dtype.INT32, Uniform(1, 0, 1), ErrorCode.UNSUPPORTED_DTYPE),
        (Dtype.FLOAT32, Uniform(1, 1, 1), ErrorCode.INVALID_ARGUMENT),
        (Dtype.FLOAT32, Normal(1, 0, -1), ErrorCode.INVALID_ARGUMENT),
        (Dtype.FLOAT32, Normal(1, 0, float("nan")), ErrorCode.INVALID_ARGUMENT),
        (Dtype.INT32, Full(float("inf")), ErrorCode.INVALID_ARGUMENT),
        (Dtype.INT32, Full(float("nan")), ErrorCode.INVALID_ARGUMENT),
        (Dtype.INT32, Arange(float("inf"), 1), ErrorCode.INVALID_ARGUMENT),
    ],
)
def test_elements_that_do_not_fit_are_refused(dtype: Dtype, init: Init, code: ErrorCode) -> None:
    with pytest.raises(BridgeError) as error:
        make(dtype, init)
    assert error.value.failure.code is code


def test_a_device_that_is_not_there_is_refused() -> None:
    with pytest.raises(BridgeError) as error:
        make(Dtype.FLOAT32, Full(0), device="cuda:0")
    assert error.value.failure.code is ErrorCode.INVALID_ARGUMENT
    assert error.value.failure.expected == "cpu"


@pytest.mark.parametrize("dtype", [Dtype.INT32, Dtype.UINT64, Dtype.FLOAT32, Dtype.BFLOAT16])
def test_an_arange_that_is_made_in_pieces_is_one_arange(dtype: Dtype) -> None:
    size = 3 * torch_tensors._BLOCK + 5
    made = make(dtype, Arange(3, 2), (size,))
    wide = torch.arange(size, dtype=torch.float64 if dtype.kind == "float" else torch.int64) * 2 + 3
    assert torch.equal(made, wide.to(TORCH[dtype]))


@pytest.mark.parametrize("init", [Full(7), Arange(5, 3)])
@pytest.mark.parametrize("shape", [(), (0,), (1, 1), (2, 0, 3), (5, 2)])
@pytest.mark.parametrize("dtype", [Dtype.FLOAT8_E4M3FN, Dtype.INT64])
def test_any_shape_is_filled(dtype: Dtype, shape: tuple[int, ...], init: Init) -> None:
    made = make(dtype, init, shape)
    assert made.is_contiguous()
    assert made.shape == shape
    first, step = (7, 0) if isinstance(init, Full) else (5, 3)
    expected = torch.tensor([first + step * at for at in range(made.numel())], dtype=torch.float32)
    assert torch.equal(made.to(torch.float32).flatten(), expected.to(TORCH[dtype]).to(torch.float32))


def test_bools_without_elements_are_bools() -> None:
    tensors = TorchTensors()
    tensors.written(tensors.empty(TensorSpec(Dtype.BOOL, (0, 3), "cpu")))


@pytest.mark.parametrize("init", [None, Full(1), Arange(0, 1), Uniform(1, 0, 1)])
def test_a_host_without_the_memory_is_told_as_such(init: Init | None) -> None:
    spec = TensorSpec(Dtype.FLOAT32, (2**50,), "")
    with pytest.raises(BridgeError, match="no memory left") as error:
        TorchTensors().create(spec, init) if init else TorchTensors().empty(spec)
    assert error.value.failure.code is ErrorCode.RESOURCE_EXHAUSTED
    assert not error.value.failure.indefinite


@pytest.mark.parametrize("more", [0, 1, 15, 16, 17, 40])
@pytest.mark.parametrize("init", [Uniform(3, -2, 5), Normal(4, 1, 3)])
def test_random_elements_that_are_made_in_pieces_are_those_of_one_piece(init: Init, more: int) -> None:
    size = 2 * torch_tensors._BLOCK + more
    made, wide = (make(dtype, init, (size,)) for dtype in (Dtype.FLOAT8_E5M2, Dtype.FLOAT32))
    assert torch.equal(made.view(torch.uint8), wide.to(torch.float8_e5m2).view(torch.uint8))


@pytest.mark.parametrize(
    "dtype", [Dtype.FLOAT16, Dtype.BFLOAT16, Dtype.FLOAT32, Dtype.COMPLEX64, Dtype.FLOAT8_E5M2]
)
def test_an_element_that_is_too_large_for_its_dtype_is_refused(dtype: Dtype) -> None:
    with pytest.raises(BridgeError, match="the element does not fit the dtype") as refused:
        make(dtype, Full(1e300))
    assert refused.value.failure.code is ErrorCode.INVALID_ARGUMENT
    assert math.isinf(make(Dtype.FLOAT32, Full(math.inf))[0])
