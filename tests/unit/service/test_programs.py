"""Programs as they come over the wire: what is refused, and as parts of other calls; fake backend, no gRPC."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pytest
from tests.support.local_gang import LocalGang

from rankbridge.v1 import (
    call_pb2,
    collective_service_pb2 as collectives,
    error_pb2,
    gang_service_pb2 as gangs,
    object_service_pb2 as objects,
    operation_service_pb2 as pb,
    value_pb2,
)
from rankbridge_server.core.coordinator import ReduceOp
from rankbridge_server.core.errors import BridgeError, ErrorCode
from rankbridge_server.core.operations.agreements import Barrier, barrier
from rankbridge_server.core.operations.reductions import AllReduce, all_reduce
from rankbridge_server.core.programs.program import ProgramLoop, ProgramOperation, RunProgram
from rankbridge_server.service.gang_calls import PendingGangCall, WireParts
from rankbridge_server.service.operations.programs import COALESCE, RUN_PROGRAM
from rankbridge_server.service.operations.table import GANG_OPERATIONS, OPERATIONS

SIZE = 3


@pytest.fixture
def gang() -> Iterator[LocalGang]:
    it = LocalGang(SIZE)
    for rank in it.ranks:
        rank.gang_calls.parts = WireParts(rank)
    yield it
    for rank in it.ranks:
        rank.close("the test is over")


def step(name: str = "", **kind: object) -> pb.ProgramStep:
    operation = pb.Operation(**kind)  # type: ignore[arg-type]
    return pb.ProgramStep(operation=pb.ProgramOperation(operation=operation, name=name))


def add(ref_id: str, name: str = "") -> pb.ProgramStep:
    return step(name, all_reduce=collectives.AllReduceRequest(ref_id=ref_id))


def loop(count: int, *steps: pb.ProgramStep) -> pb.ProgramStep:
    return pb.ProgramStep(loop=pb.ProgramLoop(count=count, steps=steps))


BARRIER = step(barrier=collectives.BarrierRequest())


def test_a_program_is_read_with_its_loops_and_names() -> None:
    request = pb.RunProgramRequest(steps=[add("1", "a"), loop(7, BARRIER, loop(2, add("%a")))], results=["a"])
    assert RUN_PROGRAM.args(request) == RunProgram(
        (
            ProgramOperation(all_reduce, AllReduce("1", ReduceOp.SUM, False), "a"),
            ProgramLoop(
                7,
                (
                    ProgramOperation(barrier, Barrier()),
                    ProgramLoop(
                        2,
                        (ProgramOperation(all_reduce, AllReduce("%a", ReduceOp.SUM, False)),),
                    ),
                ),
            ),
        ),
        ("a",),
    )


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        (pb.ProgramStep(), "step 1.1 is empty"),
        (step(), "step 1.1 cannot be a part of another operation .*got none"),
        (step(ping=pb.PingRequest()), "step 1.1 cannot be a part .*got ping"),
        (
            step(run_program=pb.RunProgramRequest(steps=[BARRIER])),
            "step 1.1 cannot be a part .*got run_program",
        ),
        (step(coalesce=pb.CoalesceRequest()), "step 1.1 cannot be a part .*got coalesce"),
        (step(all_gather_object=objects.AllGatherObjectRequest()), "step 1.1 cannot be a part"),
        (
            step(barrier=collectives.BarrierRequest(call=call_pb2.Call(group="pair"))),
            "step 1.1 has a call of its own",
        ),
        (step(all_reduce=collectives.AllReduceRequest(ref_id="1", op=99)), "unknown reduce op"),  # type: ignore[arg-type]
    ],
)
def test_a_step_that_is_no_collective_is_refused_with_its_number(bad: pb.ProgramStep, message: str) -> None:
    with pytest.raises(BridgeError, match=message) as caught:
        RUN_PROGRAM.args(pb.RunProgramRequest(steps=[BARRIER, loop(2, BARRIER, bad)]))
    assert caught.value.failure.code is ErrorCode.INVALID_ARGUMENT


def test_a_program_cannot_be_coalesced_and_can_be_submitted_and_called() -> None:
    program = pb.Operation(run_program=pb.RunProgramRequest(steps=[BARRIER]))
    with pytest.raises(BridgeError, match="operation 0 cannot be a part of another operation"):
        COALESCE.args(pb.CoalesceRequest(operations=[program]))
    assert OPERATIONS["run_program"] is RUN_PROGRAM
    assert "run_program" in GANG_OPERATIONS


def called(gang: LocalGang, parts: Sequence[pb.RunProgramRequest]) -> list[pb.OperationResult]:
    """What every member told of its part of a gang call."""
    request = gangs.CallRequest(
        call=call_pb2.Call(timeout_ms=60_000), operations=[pb.Operation(run_program=it) for it in parts]
    )
    response = PendingGangCall(gang.ranks[1], request).response(gangs.CallResponse)
    assert response.WhichOneof("outcome") == "outcomes", response.error
    return [it.result for it in response.outcomes.members]


def floats(gang: LocalGang, value: value_pb2.Value) -> list[float]:
    rank = gang.ranks[value.ref.rank]
    return list(rank.backend.tensors.read(rank.refs.find("", value.ref.id).tensor).cast("f"))


def test_a_gang_call_runs_a_program(gang: LocalGang) -> None:
    parts = [
        pb.RunProgramRequest(
            steps=[add(ref.id, "x"), loop(2, add("%x", "x"), BARRIER)],
            results=["x"],
        )
        for ref in gang.full(1)
    ]
    results = called(gang, parts)
    assert [floats(gang, it.value.list.items[0]) for it in results] == [[27, 27]] * SIZE


def test_a_gang_call_of_a_program_that_one_member_refuses_is_refused_by_all(gang: LocalGang) -> None:
    parts = [pb.RunProgramRequest(steps=[add(ref.id)]) for ref in gang.full(1)]
    parts[2].steps[0].operation.operation.all_reduce.ref_id = "%unheard-of"
    results = called(gang, parts)
    assert {error_pb2.ErrorCode.Name(it.error.code) for it in results} == {"ERROR_CODE_INVALID_ARGUMENT"}
    assert all("no earlier step gives 'unheard-of'" in it.error.message for it in results)
