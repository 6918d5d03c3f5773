"""Programs as they come over the wire."""

from __future__ import annotations

from collections.abc import Sequence

from rankbridge.v1 import operation_service_pb2 as pb

from ...core.errors import invalid
from ...core.operations import table as core
from ...core.programs.program import number_of
from .parts import part
from .wire_operation import WireOperation


def _program(request: pb.RunProgramRequest) -> core.RunProgram:
    return core.RunProgram(_steps(request.steps, ""), tuple(request.results))


def _steps(steps: Sequence[pb.ProgramStep], within: str) -> tuple[core.ProgramStep, ...]:
    return tuple(_step(number_of(place, within), step) for place, step in enumerate(steps))


def _step(number: str, step: pb.ProgramStep) -> core.ProgramStep:
    match step.WhichOneof("kind"):
        case "operation":
            operation, args = part(f"step {number}", step.operation.operation)
            return core.ProgramOperation(operation, args, step.operation.name)
        case "loop":
            return core.ProgramLoop(step.loop.count, _steps(step.loop.steps, number))
        case _:
            raise invalid(f"step {number} is empty", expected="an operation or a loop", got="none")


RUN_PROGRAM: WireOperation[pb.RunProgramRequest, core.RunProgram] = WireOperation(core.RUN_PROGRAM, _program)
