"""What takes two ranks: messages beside collectives, and what becomes of a member that does not come."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch
from tests.support.devices import device_of
from tests.support.nccl_devices import members_on_devices
from tests.unit.backends.test_coordinators import TIMEOUT_S, equal, noise
from tests.unit.backends.test_nccl_graphs import Pair

from rankbridge_server.core.coordinator import ReduceOp
from rankbridge_server.core.dtype import Dtype
from rankbridge_server.core.errors import BridgeError, ErrorCode

pytestmark = pytest.mark.gpu

FIRST, SECOND = device_of(0), device_of(1)


@pytest.mark.filterwarnings("ignore:ComplexHalf")
def test_messages_of_every_dtype_pass_while_a_member_waits_in_a_collective() -> None:
    with members_on_devices(2) as members, ThreadPoolExecutor(2) as threads:
        first, second = members.coordinators
        waiting = threads.submit(first.barrier, TIMEOUT_S)
        for dtype in Dtype:
            for shape in ((2, 3), (), (0, 2), (1025, 1023)):
                given = noise(1, dtype, shape)
                into = torch.empty_like(given, device=SECOND)
                sending = threads.submit(first.send, given.to(FIRST), 1, 7, TIMEOUT_S)
                second.recv(into, 0, 7, TIMEOUT_S)
                sending.result(TIMEOUT_S)
                assert equal(into.cpu(), given)
        assert not waiting.done()
        second.barrier(TIMEOUT_S)
        waiting.result(TIMEOUT_S)


def test_whoever_waits_too_long_fails_in_time_and_the_process_lives() -> None:
    with members_on_devices(2) as members:
        begun = time.monotonic()
        with pytest.raises(BridgeError, match="NCCL failed") as error:
            members.coordinators[0].all_reduce(torch.ones(3, device=FIRST), ReduceOp.SUM, 2.0)
        assert error.value.failure.code is ErrorCode.BACKEND_FAILED
        assert time.monotonic() - begun < TIMEOUT_S
    with members_on_devices(2) as members:
        members.call("barrier", [(TIMEOUT_S,)] * 2)


def test_what_runs_when_the_group_is_closed_fails() -> None:
    with members_on_devices(2) as members, ThreadPoolExecutor(1) as thread:
        first = members.coordinators[0]
        running = thread.submit(first.all_reduce, torch.ones(3, device=FIRST), ReduceOp.SUM, 2 * TIMEOUT_S)
        # Somewhere on its way: before, in, or behind torch. It fails wherever it is.
        first.close()
        with pytest.raises(BridgeError):
            running.result(TIMEOUT_S)


def test_a_launch_without_the_other_member_fails_in_time_and_the_process_lives() -> None:
    with members_on_devices(2) as members:
        pair = Pair(
            members.coordinators, [torch.full((2,), it + 1.0, device=device_of(it)) for it in range(2)]
        )
        for _ in range(3):
            assert pair.both(pair.replay) == [[[3, 3]]] * 2
        begun = time.monotonic()
        with pytest.raises(BridgeError, match=r"NCCL failed: a graph did not end in 2\.0 s") as error:
            pair.replay(0, timeout=2.0)
        assert error.value.failure.code is ErrorCode.BACKEND_FAILED
        assert time.monotonic() - begun < TIMEOUT_S
    with members_on_devices(2) as members:
        members.call("barrier", [(TIMEOUT_S,)] * 2)


def test_an_operation_beside_graphs_fails_in_time() -> None:
    with members_on_devices(2) as members:
        pair = Pair(
            members.coordinators, [torch.full((2,), it + 1.0, device=device_of(it)) for it in range(2)]
        )
        begun = time.monotonic()
        with pytest.raises(BridgeError, match="NCCL failed"):
            pair.add(0, pair.given[0], timeout=2.0)
        assert time.monotonic() - begun < TIMEOUT_S


def test_what_is_launched_when_the_group_is_closed_fails() -> None:
    with members_on_devices(2) as members, ThreadPoolExecutor(1) as thread:
        pair = Pair(
            members.coordinators, [torch.full((2,), it + 1.0, device=device_of(it)) for it in range(2)]
        )
        running = thread.submit(pair.replay, 0, 2 * TIMEOUT_S)
        members.coordinators[0].close()
        with pytest.raises(BridgeError):
            running.result(TIMEOUT_S)
