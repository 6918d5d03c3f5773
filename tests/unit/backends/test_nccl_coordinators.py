"""What coordinators on NCCL give, on a stand-in for torch's process group: what all backends do, and how."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor

import pytest
import torch
from tests.support.members import Members
from tests.support.nccl_on_cpu import CpuEngine, members_on_cpu
from tests.support.sampling import sample
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

from rankbridge_server.backends.nccl import NcclBackend
from rankbridge_server.backends.reductions import reduces_on_gloo
from rankbridge_server.core.coordinator import ReduceOp
from rankbridge_server.core.dtype import Dtype
from rankbridge_server.core.errors import BridgeError, ErrorCode, Phase

# What every backend must give, asked of this one.
__all__ = [
    "test_a_reduction_of_one_element_or_none_keeps_its_shape",
    "test_all_to_all_exchanges_parts_of_every_dtype",
    "test_gathers_put_together_tensors_of_every_dtype",
    "test_reduce_scatter_divides_along_every_dimension",
    "test_scatter_moves_parts_of_every_dtype",
]

BITWISE = (ReduceOp.BAND, ReduceOp.BOR, ReduceOp.BXOR)
ABILITIES = NcclBackend(0, CpuEngine())
REDUCTIONS = [(op, dtype) for op in ReduceOp for dtype in Dtype if ABILITIES.reduces(op, dtype)]


@pytest.fixture(scope="module", params=[1, 2, 3, 4], ids=lambda size: f"nccl{size}")
def group(request: pytest.FixtureRequest) -> Iterator[Members]:
    with members_on_cpu(request.param) as (members, engines):
        yield members
        for side in (side for engine in engines for side in engine.sides):
            # Nothing was returned that the device might not have done yet.
            assert side.synchronized == side.left
        assert any(side.left for engine in engines for side in engine.sides)


@pytest.mark.parametrize(("op", "dtype"), sample(REDUCTIONS, 40), ids=str)
def test_every_reduction_gives_what_python_does(group: Members, op: ReduceOp, dtype: Dtype) -> None:
    test_coordinators.test_every_reduction_gives_what_python_does(group, op, dtype)


def test_it_reduces_what_gloo_does_but_not_by_bits() -> None:
    assert {op for op, _ in REDUCTIONS} == set(ReduceOp) - set(BITWISE)
    of_gloo = [(op, dtype) for op, dtype in test_coordinators.REDUCTIONS if reduces_on_gloo(op, dtype)]
    assert [it for it in of_gloo if it[0] not in BITWISE] == REDUCTIONS
    assert len(of_gloo) < len(test_coordinators.REDUCTIONS)
    assert ABILITIES.lacks == {"scan"}


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
    assert not given[0].is_contiguous()
    total = torch.stack(given).sum(0)
    for it in group.call("all_reduce", [(mine, ReduceOp.SUM, TIMEOUT_S) for mine in given]):
        assert equal(it, total.contiguous())
    parts = group.call("reduce_scatter", [(mine, ReduceOp.SUM, 0, [2] * size, TIMEOUT_S) for mine in given])
    for part, expected in zip(parts, total.chunk(size), strict=True):
        assert equal(part, expected.contiguous())
    for it in group.call("broadcast", [(mine, 0, TIMEOUT_S) for mine in given]):
        assert equal(it, given[0].contiguous())


def test_members_wait_for_each_other_in_a_barrier() -> None:
    with members_on_cpu(2) as (members, _), ThreadPoolExecutor(1) as thread:
        first = thread.submit(members.coordinators[0].barrier, TIMEOUT_S)
        assert not first.done()
        members.coordinators[1].barrier(TIMEOUT_S)
        first.result(TIMEOUT_S)


@pytest.mark.filterwarnings("ignore:ComplexHalf")
@pytest.mark.parametrize("dtype", Dtype, ids=str)
def test_messages_of_every_dtype_pass_while_members_wait_in_a_collective(dtype: Dtype) -> None:
    with members_on_cpu(3) as (members, engines), ThreadPoolExecutor(2) as lanes:
        first, second, third = members.coordinators
        waiting = [lanes.submit(it.barrier, TIMEOUT_S) for it in (first, second)]
        with ThreadPoolExecutor(1) as courier:
            for shape in ((2, 3), (), (0, 2)):
                given = noise(1, dtype, shape)
                into = torch.zeros_like(given)
                sending = courier.submit(first.send, given, 1, 7, TIMEOUT_S)
                second.recv(into, 0, 7, TIMEOUT_S)
                sending.result(TIMEOUT_S)
                assert equal(into, given)
        assert not any(it.done() for it in waiting)
        third.barrier(TIMEOUT_S)
        for it in waiting:
            it.result(TIMEOUT_S)
        # One side for collectives, one for messages.
        assert [len(engine.sides) for engine in engines] == [2, 2, 2]


def test_whoever_waits_too_long_fails_and_may_not_know_what_happened() -> None:
    with members_on_cpu(2) as (members, _):
        members.call("barrier", [(TIMEOUT_S,)] * 2)
        with pytest.raises(BridgeError, match="NCCL failed: Work timed out") as error:
            members.coordinators[0].all_reduce(torch.ones(3), ReduceOp.SUM, 0.2)
        failure = error.value.failure
        assert (failure.code, failure.phase, failure.indefinite) == (
            ErrorCode.BACKEND_FAILED,
            Phase.DATA,
            True,
        )


def test_whoever_waits_too_long_for_a_member_to_connect_fails_likewise() -> None:
    with members_on_cpu(2) as (members, engines):
        with pytest.raises(BridgeError, match=r"did not begin in 0\.2 s: NCCL waits") as error:
            members.coordinators[0].all_reduce(torch.ones(3), ReduceOp.SUM, 0.2)
        assert error.value.failure.code is ErrorCode.BACKEND_FAILED
        assert engines[0].groups[0].aborted.is_set()


@pytest.mark.parametrize("message", [False, True], ids=["collective", "message"])
def test_what_runs_when_the_group_is_closed_fails_at_once(message: bool) -> None:
    with members_on_cpu(2) as (members, engines), ThreadPoolExecutor(1) as thread:
        first = members.coordinators[0]
        if message:
            running: Future[object] = thread.submit(first.recv, torch.ones(3), 1, 0, TIMEOUT_S)
        else:
            running = thread.submit(first.all_reduce, torch.ones(3), ReduceOp.SUM, TIMEOUT_S)
        until_inside(engines[0], 1 if message else 0)
        first.close()
        # The engine said that it was done.
        with pytest.raises(BridgeError, match="the group was closed"):
            running.result(TIMEOUT_S)
        with pytest.raises(BridgeError, match="the group was closed"):
            first.barrier(TIMEOUT_S)
        with pytest.raises(BridgeError, match="the group was closed"):
            first.send(torch.ones(3), 1, 0, TIMEOUT_S)
        assert all(it.aborted.is_set() for it in engines[0].groups)
        assert not any(it.aborted.is_set() for it in engines[1].groups)


def test_what_fails_between_others_does_not_keep_them() -> None:
    with members_on_cpu(2) as (members, engines):
        with pytest.raises(AssertionError):
            # Not bytes: the stand-in refuses it between start and end.
            members.coordinators[0]._messages.run_together(  # type: ignore[attr-defined]
                [lambda group: group.send([torch.ones(2)], 1, 0)], TIMEOUT_S
            )
        assert engines[0].groups[1]._coalesced is None
    with members_on_cpu(2) as (members, _):
        into = torch.zeros(2)
        sending = threading.Thread(target=members.coordinators[0].send, args=(torch.ones(2), 1, 0, TIMEOUT_S))
        sending.start()
        members.coordinators[1].recv(into, 0, 0, TIMEOUT_S)
        sending.join(TIMEOUT_S)
        assert into.tolist() == [1, 1]


def test_there_is_no_scan(group: Members) -> None:
    with pytest.raises(BridgeError, match="no scan"):
        group.coordinators[0].scan(torch.ones(1), ReduceOp.SUM, False, TIMEOUT_S)


def until_inside(engine: CpuEngine, communicator: int) -> None:
    """Return when a call waits on that communicator."""
    engine.groups[communicator].waiting.wait(TIMEOUT_S)
