"""An operation is the same by each way to ask for it: typed calls, Submit, parts by streams."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.waiting import until
from tests.unit.service.stages import (
    PATIENCE_S,
    ByGrpc,
    Stage,
    Stream,
    is_healthy,
    name_of,
    pending,
    sequences,
)

from rankbridge.v1 import (
    call_pb2,
    collective_service_pb2 as collectives,
    collective_service_pb2_grpc,
    error_pb2,
    operation_service_pb2 as operations,
    operation_service_pb2_grpc,
)


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Stage]:
    it = Stage(tmp_path, ByGrpc)
    yield it
    it.close()


def barrier(**call: object) -> collectives.BarrierRequest:
    return collectives.BarrierRequest(call=call_pb2.Call(**{"timeout_ms": 60_000, **call}))  # type: ignore[arg-type]


def by_its_own_rpc(stage: Stage, request: collectives.BarrierRequest) -> error_pb2.Error:
    return collective_service_pb2_grpc.CollectiveServiceStub(stage.channels[1]).Barrier(request).error


def by_run(stage: Stage, request: collectives.BarrierRequest) -> error_pb2.Error:
    stub = operation_service_pb2_grpc.OperationServiceStub(stage.channels[1])
    return stub.Run(operations.RunRequest(operation=operations.Operation(barrier=request))).error


def by_a_stream(stage: Stage, request: collectives.BarrierRequest) -> error_pb2.Error:
    stream = Stream(stage, 1)
    stream.part(operations.Operation(barrier=request))
    return stream.answer().result.error


def by_submit(stage: Stage, request: collectives.BarrierRequest) -> error_pb2.Error:
    stub = operation_service_pb2_grpc.OperationServiceStub(stage.channels[1])
    submitted = stub.Submit(operations.SubmitRequest(operation=operations.Operation(barrier=request)))
    if submitted.HasField("error"):
        return submitted.error
    return stub.Await(operations.AwaitRequest(operation_id=submitted.operation_id, timeout_ms=60_000)).error


@pytest.mark.parametrize(
    ("call", "code"),
    [
        ({"group": "nowhere"}, "UNKNOWN_GROUP"),
        ({"generation": 9}, "STALE_GENERATION"),
        # Enough for the rank to begin with it: it would be withdrawn as one that waited in a queue otherwise.
        ({"timeout_ms": 600}, "PEER_MISSING"),
    ],
)
def test_a_failure_is_the_same_by_each_way(stage: Stage, call: dict[str, object], code: str) -> None:
    errors = [
        ask(stage, barrier(operation_id=ask.__name__, **call))
        for ask in (by_its_own_rpc, by_run, by_a_stream, by_submit)
    ]
    assert {name_of(it) for it in errors} == {code}
    assert [it.operation_id for it in errors] == ["by_its_own_rpc", "by_run", "by_a_stream", "by_submit"]
    # How long the other ranks have been idle differs, and so do the lines of the message that say it.
    for it in errors:
        it.message = it.message.splitlines()[0]
    shown = [re.sub(r"for_ms: \d+", "", str(it).replace(it.operation_id, "ID")) for it in errors]
    assert shown[0] == shown[1] == shown[2]
    assert is_healthy(stage)


def test_a_typed_call_whose_caller_hangs_up_is_withdrawn(stage: Stage) -> None:
    stub = collective_service_pb2_grpc.CollectiveServiceStub(stage.channels[1])
    call = stub.Barrier.future(barrier())
    until(lambda: pending(stage, 1) == 1)
    call.cancel()
    until(lambda: pending(stage, 1) == 0)
    assert is_healthy(stage)
    assert sequences(stage) == [1, 1, 1]


def test_what_was_submitted_is_no_callers_to_withdraw(stage: Stage) -> None:
    request = operations.SubmitRequest(
        operation=operations.Operation(barrier=barrier(operation_id="left alone"))
    )
    stub = operation_service_pb2_grpc.OperationServiceStub(stage.channels[1])
    assert stub.Submit(request).operation_id == "left alone"
    assert pending(stage, 1) == 1
    for at in (0, 2):
        by = operation_service_pb2_grpc.OperationServiceStub(stage.channels[at])
        assert by.Submit(request).operation_id == "left alone"
    for channel in stage.channels:
        by = operation_service_pb2_grpc.OperationServiceStub(channel)
        awaited = by.Await(operations.AwaitRequest(operation_id="left alone", timeout_ms=60_000))
        assert awaited.WhichOneof("outcome") == "value"


def test_a_submitted_operation_needs_an_id_and_a_kind(stage: Stage) -> None:
    stub = operation_service_pb2_grpc.OperationServiceStub(stage.channels[1])
    for operation in (operations.Operation(), operations.Operation(barrier=barrier())):
        error = stub.Submit(operations.SubmitRequest(operation=operation)).error
        assert (name_of(error), error.operation) == ("INVALID_ARGUMENT", "submit")
    assert pending(stage, 1) == 0


def test_arguments_that_one_rank_cannot_read_fail_the_operation_on_all_at_once(stage: Stage) -> None:
    refs = [it.id for it in stage.gang.full(1)]
    # A member that waited for rank 1 would wait for longer than any test may take.
    call = call_pb2.Call(operation_id="sum", timeout_ms=3_600_000)
    stubs = [collective_service_pb2_grpc.CollectiveServiceStub(channel) for channel in stage.channels]
    waiting = [
        stubs[rank].AllReduce.future(
            collectives.AllReduceRequest(call=call, ref_id=refs[rank]), timeout=PATIENCE_S
        )
        for rank in (0, 2)
    ]
    unknown = collectives.AllReduceRequest(call=call, ref_id=refs[1], op=99)  # type: ignore[arg-type]
    refused = stubs[1].AllReduce(unknown).error
    assert (name_of(refused), refused.got, refused.group) == ("INVALID_ARGUMENT", "number 99", "world")
    for answer in waiting:
        error = answer.result().error
        assert (name_of(error), [it.rank for it in error.ranks]) == ("INVALID_ARGUMENT", [1])
    assert is_healthy(stage)


def test_those_who_await_an_operation_and_hang_up_leave_no_thread_waiting(stage: Stage) -> None:
    stub = operation_service_pb2_grpc.OperationServiceStub(stage.channels[1])
    request = operations.SubmitRequest(operation=operations.Operation(barrier=barrier(operation_id="one")))
    assert not stub.Submit(request).HasField("error")
    pool = stage.servers[1]._pool
    waiting = [
        stub.Await.future(operations.AwaitRequest(operation_id="one", timeout_ms=600_000))
        for _ in range(pool._max_workers + 50)
    ]
    until(lambda: len(pool._threads) == pool._max_workers)
    for it in waiting:
        it.cancel()
    assert stub.Poll(operations.PollRequest(operation_id="one"), timeout=PATIENCE_S / 2).status.state
    still = stub.Await.future(operations.AwaitRequest(operation_id="one", timeout_ms=600_000))
    assert stub.Cancel(operations.CancelRequest(operation_id="one"), timeout=PATIENCE_S / 2).cancelled
    assert name_of(still.result(PATIENCE_S).error) == "CANCELLED"
    assert is_healthy(stage)


def test_a_caller_of_run_that_hangs_up_withdraws_its_part(stage: Stage) -> None:
    stub = operation_service_pb2_grpc.OperationServiceStub(stage.channels[1])
    request = operations.RunRequest(operation=operations.Operation(barrier=barrier()))
    call = stub.Run.future(request)
    until(lambda: pending(stage, 1) == 1)
    call.cancel()
    until(lambda: pending(stage, 1) == 0)
    assert is_healthy(stage)


def test_run_needs_an_operation(stage: Stage) -> None:
    stub = operation_service_pb2_grpc.OperationServiceStub(stage.channels[1])
    error = stub.Run(operations.RunRequest()).error
    assert (name_of(error), error.operation) == ("INVALID_ARGUMENT", "run")
