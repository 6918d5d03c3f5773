"""Several collectives as one operation, as they come over the wire: coalesced, as programs, and as graphs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rankbridge.v1 import call_pb2, graph_service_pb2, operation_service_pb2 as pb

from ...core.errors import invalid
from ...core.operations.operation import Operation
from ...core.programs.plan import coalesce, run_program
from ...core.programs.program import (
    Coalesce,
    ProgramLoop,
    ProgramOperation,
    ProgramStep,
    RunProgram,
    number_of,
)
from ...core.programs.replays import replay
from .derived import COLLECTIVES, derived
from .wire_operation import WireOperation


def _coalesce(request: pb.CoalesceRequest) -> Coalesce:
    return Coalesce(tuple(_part(f"operation {number}", it) for number, it in enumerate(request.operations)))


def _program(request: pb.RunProgramRequest) -> RunProgram:
    return RunProgram(_steps(request.steps, ""), tuple(request.results))


def _steps(steps: Sequence[pb.ProgramStep], within: str) -> tuple[ProgramStep, ...]:
    return tuple(_step(number_of(place, within), step) for place, step in enumerate(steps))


def _step(number: str, step: pb.ProgramStep) -> ProgramStep:
    match step.WhichOneof("kind"):
        case "operation":
            operation, args = _part(f"step {number}", step.operation.operation)
            return ProgramOperation(operation, args, step.operation.name)
        case "loop":
            return ProgramLoop(step.loop.count, _steps(step.loop.steps, number))
        case _:
            raise invalid(f"step {number} is empty", expected="an operation or a loop", got="none")


def _part(where: str, operation: pb.Operation) -> tuple[Operation[Any], Any]:
    """A collective and its arguments. `where` it is: "operation 3". Raises INVALID_ARGUMENT for all others."""
    kind = operation.WhichOneof("kind")
    if kind not in COLLECTIVES:
        raise invalid(
            f"{where} cannot be a part of another operation",
            expected="one of " + ", ".join(COLLECTIVES),
            got=kind or "none",
        )
    request = getattr(operation, kind)
    if request.HasField("call") and request.call != call_pb2.Call():
        raise invalid(f"{where} has a call of its own", expected="the call of all", got=str(request.call))
    return COLLECTIVES[kind].core, COLLECTIVES[kind].args(request)


COALESCE: WireOperation[pb.CoalesceRequest, Coalesce] = WireOperation(coalesce, _coalesce)
RUN_PROGRAM: WireOperation[pb.RunProgramRequest, RunProgram] = WireOperation(run_program, _program)
REPLAY = derived(replay, graph_service_pb2.ReplayRequest)
