"""Tensors on a device, which here is the host: its memory is written and read by way of other memory all the same."""

from __future__ import annotations

from typing import cast

import pytest
import torch

from rankbridge_server.backends.nccl.tensors import DeviceTensors
from rankbridge_server.backends.torch_tensors import TORCH, TorchTensors
from rankbridge_server.core.dtype import Dtype
from rankbridge_server.core.errors import BridgeError, ErrorCode, Failure
from rankbridge_server.core.operations.payloads import as_bytes, as_tensor
from rankbridge_server.core.refs.tensors import Arange, Full, Init, Normal, TensorSpec, Uniform


class Device:
    """Tensors, and how often the device was waited for."""

    def __init__(self) -> None:
        self.settled = 0
        self.tensors = DeviceTensors(torch.device("cpu"), self._settle, pinned=False)

    def _settle(self) -> None:
        self.settled += 1


@pytest.fixture
def device() -> Device:
    return Device()


@pytest.mark.filterwarnings("ignore:ComplexHalf")
@pytest.mark.parametrize("dtype", Dtype, ids=str)
@pytest.mark.parametrize("shape", [(2, 3), (), (0, 2)], ids=str)
def test_bytes_written_are_bytes_read(device: Device, dtype: Dtype, shape: tuple[int, ...]) -> None:
    spec = TensorSpec(dtype, shape, "cpu")
    tensor = device.tensors.empty(spec)
    data = bytes(at % 2 for at in range(spec.nbytes))
    device.tensors.write(tensor)[:] = data
    device.tensors.written(tensor)
    assert bytes(device.tensors.read(tensor)) == data
    held = cast(torch.Tensor, tensor)
    assert (held.dtype, tuple(held.shape)) == (TORCH[dtype], shape)
    assert bytes(TorchTensors().read(tensor)) == data


def test_nothing_reaches_the_tensor_before_it_is_written(device: Device) -> None:
    tensor = cast(torch.Tensor, device.tensors.empty(TensorSpec(Dtype.UINT8, (4,), "")))
    tensor.fill_(9)
    device.tensors.write(tensor)[:2] = b"\x01\x02"
    # Asked for again, it is the same memory.
    device.tensors.write(tensor)[2:] = b"\x03\x04"
    assert tensor.tolist() == [9] * 4
    before = device.settled
    device.tensors.written(tensor)
    assert tensor.tolist() == [1, 2, 3, 4]
    assert device.settled > before
    # The memory by which it went is not kept.
    assert not [it for it in vars(tensor).values() if isinstance(it, torch.Tensor)]
    device.tensors.written(tensor)
    assert tensor.tolist() == [1, 2, 3, 4]


def test_what_is_read_is_a_copy_of_a_strided_tensor_laid_out(device: Device) -> None:
    tensor = torch.arange(6, dtype=torch.int8).reshape(2, 3).t()
    read = device.tensors.read(tensor)
    tensor.zero_()
    assert bytes(read) == bytes([0, 3, 1, 4, 2, 5])
    assert device.settled


def test_a_bool_that_is_neither_0_nor_1_is_refused_and_never_placed(device: Device) -> None:
    tensor = cast(torch.Tensor, device.tensors.empty(TensorSpec(Dtype.BOOL, (2,), "")))
    tensor.fill_(True)
    device.tensors.write(tensor)[:] = b"\x01\x02"
    with pytest.raises(BridgeError) as error:
        device.tensors.written(tensor)
    assert error.value.failure.code is ErrorCode.INVALID_ARGUMENT
    assert tensor.tolist() == [True, True]


@pytest.mark.parametrize("data", [b"", b"some bytes"])
def test_objects_travel_as_tensors(device: Device, data: bytes) -> None:
    assert as_bytes(device.tensors, as_tensor(device.tensors, data)) == data


INITS: list[Init] = [Full(1), Arange(0, 1), Uniform(3, 0, 1), Normal(3, 0, 1)]


@pytest.mark.filterwarnings("ignore:ComplexHalf")
@pytest.mark.parametrize("init", INITS, ids=lambda it: type(it).__name__)
@pytest.mark.parametrize("dtype", Dtype, ids=str)
def test_elements_are_those_of_host_tensors(device: Device, dtype: Dtype, init: Init) -> None:
    spec = TensorSpec(dtype, (2, 3), "")
    assert made(device.tensors, spec, init) == made(TorchTensors(), spec, init)


def made(tensors: TorchTensors, spec: TensorSpec, init: Init) -> bytes | Failure:
    try:
        return bytes(tensors.read(tensors.create(spec, init)))
    except BridgeError as error:
        return error.failure


def test_parts_have_memory_of_their_own(device: Device) -> None:
    parts = device.tensors.cut(torch.arange(6), [(2,), (2, 2), (0,)])
    assert [cast(torch.Tensor, it).tolist() for it in parts] == [[0, 1], [[2, 3], [4, 5]], []]
    assert [cast(torch.Tensor, it).untyped_storage().nbytes() for it in parts] == [16, 32, 0]
    assert cast(torch.Tensor, device.tensors.reshaped(torch.arange(6), (2, 3))).tolist() == [
        [0, 1, 2],
        [3, 4, 5],
    ]


def test_a_tensor_for_another_device_is_refused(device: Device) -> None:
    spec = TensorSpec(Dtype.INT8, (1,), "cuda:1")
    with pytest.raises(BridgeError, match="no such device"):
        device.tensors.empty(spec)
    with pytest.raises(BridgeError, match="no such device"):
        device.tensors.create(spec, Full(0))


def test_a_device_that_is_full_says_so() -> None:
    def settle() -> None:
        raise torch.OutOfMemoryError("CUDA out of memory")

    tensors = DeviceTensors(torch.device("cpu"), settle, pinned=False)
    with pytest.raises(BridgeError, match="no room on device cpu: CUDA out of memory") as error:
        tensors.empty(TensorSpec(Dtype.INT8, (1,), ""))
    assert error.value.failure.code is ErrorCode.RESOURCE_EXHAUSTED


def test_a_device_adopts_no_memory_of_the_host(device: Device) -> None:
    spec = TensorSpec(Dtype.UINT8, (4,), "")
    assert device.tensors.adopted(spec, memoryview(bytearray(4))) is None
