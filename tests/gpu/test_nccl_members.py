"""What coordinators on NCCL give: with one device a group of one, with more of each size up to their number."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, cast

import pytest
import torch
from tests.support.devices import DEVICES, IN_PROCESS, SHARING, device_of
from tests.support.members import Members
from tests.support.nccl_devices import members_on_devices
from tests.unit.backends import test_coordinators
from tests.unit.backends.test_coordinators import (
    TIMEOUT_S,
    equal,
    noise,
    test_a_reduction_of_one_element_or_none_keeps_its_shape,
    test_all_to_all_exchanges_parts_of_every_dtype,
    test_gathers_put_together_tensors_of_every_dtype,
    test_reduce_scatter_divides_along_every_dimension,
    test_scatter_moves_parts_of_every_dtype,
)

from rankbridge_server.backends.nccl import NcclBackend, missing
from rankbridge_server.backends.nccl.address import Address
from rankbridge_server.backends.nccl.reductions import reduces
from rankbridge_server.backends.torch_tensors import TorchTensors
from rankbridge_server.core.coordinator import GroupDescription, ReduceOp
from rankbridge_server.core.dtype import Dtype
from rankbridge_server.core.errors import BridgeError, ErrorCode
from rankbridge_server.core.refs.tensors import Arange, Full, Init, Normal, TensorSpec, Uniform

# What every backend must give, asked of this one.
__all__ = [
    "test_a_reduction_of_one_element_or_none_keeps_its_shape",
    "test_all_to_all_exchanges_parts_of_every_dtype",
    "test_gathers_put_together_tensors_of_every_dtype",
    "test_reduce_scatter_divides_along_every_dimension",
    "test_scatter_moves_parts_of_every_dtype",
]

pytestmark = pytest.mark.gpu

ALONE = GroupDescription("alone", (0,))
REDUCTIONS = [(op, dtype) for op in ReduceOp for dtype in Dtype if reduces(op, dtype)]


@pytest.fixture(scope="module", params=range(1, 1 + IN_PROCESS), ids=lambda size: f"nccl{size}")
def group(request: pytest.FixtureRequest) -> Iterator[Members]:
    with members_on_devices(request.param) as members:
        yield members


@pytest.mark.parametrize(("op", "dtype"), REDUCTIONS, ids=str)
def test_every_reduction_gives_what_python_does(group: Members, op: ReduceOp, dtype: Dtype) -> None:
    test_coordinators.test_every_reduction_gives_what_python_does(group, op, dtype)


@pytest.mark.filterwarnings("ignore:ComplexHalf")
@pytest.mark.parametrize("dtype", Dtype, ids=str)
def test_broadcast_moves_every_dtype(group: Members, dtype: Dtype) -> None:
    src = len(group) - 1
    for shape in ((2, 3), (), (0, 2)):
        given = [noise(rank, dtype, shape) for rank in range(len(group))]
        for it in group.call("broadcast", [(mine, src, TIMEOUT_S) for mine in given]):
            assert equal(it, given[src])


def test_strided_tensors_are_laid_out(group: Members) -> None:
    size = len(group)
    given = [torch.arange(6 * size).reshape(3, 2 * size).t() + rank for rank in range(size)]
    total = torch.stack(given).sum(0)
    for it in group.call("all_reduce", [(mine, ReduceOp.SUM, TIMEOUT_S) for mine in given]):
        assert equal(it, total.contiguous())
    parts = group.call("reduce_scatter", [(mine, ReduceOp.SUM, 0, [2] * size, TIMEOUT_S) for mine in given])
    for part, expected in zip(parts, total.chunk(size), strict=True):
        assert equal(part, expected.contiguous())


def test_large_results_are_there_when_they_are_told(group: Members) -> None:
    size, elements = len(group), 32 * 2**20
    given = [torch.full((elements,), float(rank + 1)) for rank in range(size)]
    for it in group.call("all_reduce", [(mine, ReduceOp.SUM, TIMEOUT_S) for mine in given]):
        assert bool((it == size * (size + 1) / 2).all())
    for it in group.call("all_gather", [(mine, 0, [elements] * size, TIMEOUT_S) for mine in given]):
        assert equal(it, torch.cat(given))


def test_what_was_told_is_there_for_every_stream(group: Members) -> None:
    """What is read on another stream right after a call is what the call gave."""
    devices = [device_of(rank) for rank in range(len(group))]
    side = torch.cuda.Stream(devices[0])  # type: ignore[no-untyped-call]
    with ThreadPoolExecutor(len(group)) as threads:
        for turn in range(50):
            calls = [
                threads.submit(it.broadcast, torch.full((2**20,), turn, device=device), 0, TIMEOUT_S)
                for it, device in zip(group.coordinators, devices, strict=True)
            ]
            first, *_ = [cast(torch.Tensor, it.result(TIMEOUT_S)) for it in calls]
            with torch.cuda.stream(side):
                assert bool((first == turn).all())


def test_a_group_is_formed_again_and_again() -> None:
    ids: set[bytes] = set()
    backend = NcclBackend(0)
    for generation in range(1, 6):
        joining = backend.join(ALONE, 0, generation)
        ids.update(Address.decoded(joining.address).ids)
        coordinator = joining.connect([joining.address], TIMEOUT_S)
        coordinator.barrier(TIMEOUT_S)
        coordinator.close()
        with pytest.raises(BridgeError, match="the group was closed"):
            coordinator.barrier(TIMEOUT_S)
    assert sorted(map(len, ids)) == [128] * 5


def test_an_abandoned_forming_leaves_no_thread_of_ours_and_another_works() -> None:
    pair, backend = GroupDescription("pair", (0, 1)), NcclBackend(0)
    joining = backend.join(pair, 0, 1)
    assert len(Address.decoded(joining.address).ids) == 2
    making = [it for it in threading.enumerate() if it.name == "nccl-joining"]
    assert len(making) == 2
    joining.abandon()
    for thread in making:
        thread.join(TIMEOUT_S)
        assert not thread.is_alive()
    alone = backend.join(ALONE, 0, 2)
    coordinator = alone.connect([alone.address], TIMEOUT_S)
    coordinator.barrier(TIMEOUT_S)
    coordinator.close()


# A process ends in the way that ranks do: a thread waits in torch for the member that does not come.
_WAITS_IN_VAIN = """
import os
from rankbridge_server.backends.nccl import NcclBackend
from rankbridge_server.backends.nccl.address import Address
from rankbridge_server.core.coordinator import GroupDescription
from rankbridge_server.core.errors import BridgeError
joining = NcclBackend(0).join(GroupDescription("pair", (0, 1)), 0, 1)
try:
    joining.connect([joining.address, Address("another").encoded()], 2.0)
except BridgeError as error:
    print(error, flush=True)
    os._exit(7)
"""


def test_a_member_that_does_not_come_is_an_error_in_time() -> None:
    done = subprocess.run([sys.executable, "-c", _WAITS_IN_VAIN], capture_output=True, text=True, timeout=120)
    assert done.returncode == 7
    assert done.stdout == "NCCL did not connect: not all members came in 2.0 s\n"


def test_two_members_on_one_device_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(SHARING, raising=False)
    pair, backend = GroupDescription("pair", (0, 1)), NcclBackend(0)
    first, second = backend.join(pair, 0, 1), backend.join(pair, 1, 1)
    with pytest.raises(BridgeError, match="on one device"):
        first.connect([first.address, second.address], TIMEOUT_S)
    second.abandon()


def test_torch_has_what_is_needed_and_ranks_take_devices_in_turn() -> None:
    assert missing() == ""
    for local_rank in range(DEVICES + 1):
        assert NcclBackend(local_rank).tensors.device == str(device_of(local_rank))
    assert NcclBackend(0).memory > 2**30


# --- tensors -------------------------------------------------------------------------------------------------

INITS: list[Init] = [Full(1), Arange(0, 1), Uniform(3, 0, 1), Normal(3, 0, 1)]


@pytest.mark.filterwarnings("ignore:ComplexHalf")
@pytest.mark.parametrize("dtype", Dtype, ids=str)
@pytest.mark.parametrize("shape", [(2, 3), (), (0, 2), (1025, 1023)], ids=str)
def test_bytes_written_are_bytes_read(dtype: Dtype, shape: tuple[int, ...]) -> None:
    tensors = NcclBackend(0).tensors
    spec = TensorSpec(dtype, shape, "cuda:0")
    tensor = tensors.empty(spec)
    data = noise(5, dtype, shape).reshape(-1).view(torch.uint8).numpy().tobytes()
    tensors.write(tensor)[:] = data
    tensors.written(tensor)
    assert cast(torch.Tensor, tensor).device == torch.device("cuda", 0)
    assert bytes(tensors.read(tensor)) == data


@pytest.mark.filterwarnings("ignore:ComplexHalf")
@pytest.mark.parametrize("init", INITS, ids=lambda it: type(it).__name__)
@pytest.mark.parametrize("dtype", Dtype, ids=str)
def test_elements_are_those_of_host_tensors(dtype: Dtype, init: Init) -> None:
    def made(tensors: TorchTensors) -> Any:
        try:
            return bytes(tensors.read(tensors.create(TensorSpec(dtype, (5, 7), ""), init)))
        except BridgeError as error:
            return error.failure

    assert made(NcclBackend(0).tensors) == made(TorchTensors())


def test_a_device_that_is_full_says_so() -> None:
    backend = NcclBackend(0)
    with pytest.raises(BridgeError, match="no room on device cuda:0") as error:
        backend.tensors.empty(TensorSpec(Dtype.UINT8, (2 * backend.memory,), ""))
    assert error.value.failure.code is ErrorCode.RESOURCE_EXHAUSTED
