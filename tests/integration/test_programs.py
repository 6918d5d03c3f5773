"""Programs over the wire, on real ranks with Gloo."""

from __future__ import annotations

import struct
import uuid
from collections.abc import Iterator

import grpc
import pytest
from tests.support.gangs import RunningGang
from tests.support.waiting import until

from rankbridge.v1 import (
    call_pb2,
    collective_service_pb2 as collectives,
    dtype_pb2,
    error_pb2,
    operation_service_pb2 as pb,
    operation_service_pb2_grpc as stub,
    rank_service_pb2,
    rank_service_pb2_grpc,
    ref_service_pb2,
    ref_service_pb2_grpc,
    tensor_pb2,
)

SIZE = 4
SPEC = tensor_pb2.TensorSpec(dtype=dtype_pb2.DTYPE_FLOAT32, shape=[2])


@pytest.fixture
def channels(gloo4: RunningGang) -> Iterator[list[grpc.Channel]]:
    its = [grpc.insecure_channel(target) for target in gloo4.targets]
    yield its
    for channel in its:
        channel.close()


def step(name: str = "", *, barrier: bool = False, takes: str = "", in_place: bool = False) -> pb.ProgramStep:
    """A barrier, or a sum."""
    if barrier:
        operation = pb.Operation(barrier=collectives.BarrierRequest())
    else:
        reduce = collectives.AllReduceRequest(ref_id=takes, in_place=in_place)
        operation = pb.Operation(all_reduce=reduce)
    return pb.ProgramStep(operation=pb.ProgramOperation(operation=operation, name=name))


def program(ref_id: str, count: int, operation_id: str = "") -> pb.RunProgramRequest:
    """Triples what it has given `count` times in a loop, and once in place."""
    steps = [step(takes="%x", name="x"), step(barrier=True)]
    return pb.RunProgramRequest(
        call=call_pb2.Call(timeout_ms=60_000, operation_id=operation_id),
        steps=[
            step("x", takes=ref_id),
            pb.ProgramStep(loop=pb.ProgramLoop(count=count, steps=steps)),
            step(takes=ref_id, in_place=True),
        ],
        results=["x"],
    )


def ones(channel: grpc.Channel) -> str:
    refs = ref_service_pb2_grpc.RefServiceStub(channel)
    full = ref_service_pb2.Full(float=1)
    return str(refs.CreateTensor(ref_service_pb2.CreateTensorRequest(tensor=SPEC, full=full)).ref.id)


def floats(channel: grpc.Channel, ref_id: str) -> tuple[float, ...]:
    refs = ref_service_pb2_grpc.RefServiceStub(channel)
    parts = list(refs.GetTensor(ref_service_pb2.GetTensorRequest(ref_id=ref_id)))
    return struct.unpack("<2f", b"".join(it.chunk for it in parts if it.WhichOneof("part") == "chunk"))


def test_every_rank_runs_it(channels: list[grpc.Channel]) -> None:
    ids = [ones(channel) for channel in channels]
    calls = [
        stub.OperationServiceStub(channel).RunProgram.future(program(ref_id, 3))
        for channel, ref_id in zip(channels, ids, strict=True)
    ]
    values = [call.result(60).value.list.items for call in calls]
    assert [floats(channel, kept.ref.id) for channel, (kept,) in zip(channels, values, strict=True)] == [
        (SIZE**4, SIZE**4)
    ] * SIZE
    assert [floats(*its) for its in zip(channels, ids, strict=True)] == [(SIZE, SIZE)] * SIZE


def test_it_is_submitted_polled_and_awaited(channels: list[grpc.Channel]) -> None:
    stubs = [stub.OperationServiceStub(channel) for channel in channels]
    operation_id = uuid.uuid4().hex
    ids = [ones(channel) for channel in channels]
    for its, ref_id in zip(stubs, ids, strict=True):
        request = pb.SubmitRequest(operation=pb.Operation(run_program=program(ref_id, 2, operation_id)))
        assert its.Submit(request).operation_id == operation_id
    awaited = [its.Await(pb.AwaitRequest(operation_id=operation_id, timeout_ms=60_000)) for its in stubs]
    polled = [its.Poll(pb.PollRequest(operation_id=operation_id)).status for its in stubs]
    assert [it.result.value for it in polled] == [it.value for it in awaited]
    assert [
        floats(channel, it.value.list.items[0].ref.id) for channel, it in zip(channels, awaited, strict=True)
    ] == [(SIZE**3, SIZE**3)] * SIZE


def test_one_that_was_admitted_goes_on_when_it_is_cancelled(channels: list[grpc.Channel]) -> None:
    stubs = [stub.OperationServiceStub(channel) for channel in channels]
    operation_id = uuid.uuid4().hex
    long = program(ones(channels[0]), 1, operation_id)
    barriers = pb.RunProgramRequest(call=long.call, steps=[pb.ProgramStep(loop=pb.ProgramLoop(count=1000))])
    barriers.steps[0].loop.steps.append(step(barrier=True))
    for its in stubs:
        its.Submit(pb.SubmitRequest(operation=pb.Operation(run_program=barriers)))
    poll = pb.PollRequest(operation_id=operation_id)
    begun = (pb.OPERATION_STATE_DATA, pb.OPERATION_STATE_DONE)
    until(lambda: all(its.Poll(poll).status.state in begun for its in stubs))
    assert not stubs[1].Cancel(pb.CancelRequest(operation_id=operation_id)).cancelled
    awaited = [its.Await(pb.AwaitRequest(operation_id=operation_id, timeout_ms=60_000)) for its in stubs]
    assert [it.WhichOneof("outcome") for it in awaited] == ["value"] * SIZE


def test_what_is_wrong_is_told_by_its_step(channels: list[grpc.Channel]) -> None:
    request = program(ones(channels[0]), 0)
    error = stub.OperationServiceStub(channels[0]).RunProgram(request).error
    assert error.code == error_pb2.ERROR_CODE_INVALID_ARGUMENT
    assert (error.operation, error.indefinite) == ("run_program", False)
    assert "step 1: the loop has no count" in error.message


def test_ranks_tell_that_they_run_programs(channels: list[grpc.Channel]) -> None:
    rank = rank_service_pb2_grpc.RankServiceStub(channels[0])
    description = rank.DescribeRank(rank_service_pb2.DescribeRankRequest())
    assert "run_program" in description.abilities.collectives
