"""Collectives of one group of which one takes what another gives, as one operation."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import Any, Unpack

from rankbridge._plan.calls import Call
from rankbridge._plan.operations.coalesced import write_part
from rankbridge._plan.operations.declare import (
    CallOptions,
    Scope,
    find_operation,
    group_call,
    operation,
    options_of,
)
from rankbridge._plan.operations.readers import one_of_each
from rankbridge._plan.operations.shares import shares
from rankbridge._plan.program_steps import RUN_PROGRAM, Loop, Named, Step, Steps
from rankbridge._plan.ref import Ref
from rankbridge.errors import InvalidArgumentError
from rankbridge.v1 import operation_service_pb2 as operation_pb

_ANYWHERE = Scope(rank=0, session_id="", timeout=1.0)


@operation
def run_program(
    scope: Scope, program: Steps, *, keep: Sequence[Named] = (), **options: Unpack[CallOptions]
) -> Call[list[Any]]:
    """Runs a program, and gives what is kept."""
    kept = checked_program(program)._kept(keep)
    first = program._first
    if isinstance(first, tuple):
        raise InvalidArgumentError(
            "this program is a gang's",
            rank=scope.rank,
            operation=RUN_PROGRAM,
            expected="a program that takes refs of this rank",
            got=f"lists of {len(first)} refs",
        )
    session_id = scope.session_id if first is None else first.session_id
    request = operation_pb.RunProgramRequest(
        call=options_of(scope, session_id, "run_program", **options), results=[named.name for named in kept]
    )
    used = {step.given.name for step in program._each() if isinstance(step.given, Named)}
    _write(scope, program._steps, request.steps, used | set(request.results))

    return group_call(scope, RUN_PROGRAM, request, one_of_each("kept name", len(kept)))


def checked_program(program: object) -> Steps:
    """Gives a program that can be run.

    Raises:
        InvalidArgumentError: It is none, it is empty, or a loop is not at its end.
    """
    if not isinstance(program, Steps):
        raise InvalidArgumentError(
            "this is no program", operation=RUN_PROGRAM, expected="a Program", got=repr(program)
        )
    program._checked()
    return program


def check_step(step: Step, members: int | None) -> None:
    """Checks a step's options as far as that can be done without asking a rank.

    Args:
        step: The step.
        members: How many members its group has, if it is a gang's. None: it is one rank's.

    Raises:
        InvalidArgumentError: They are not what the collective takes.
        TypeError: It has no such option.
    """
    for own in [step.options] if members is None else shares(step.operation, dict(step.options), members):
        _call(_ANYWHERE, replace(step, options=own, given=None if step.given is None else _standing_for("")))


def parts_of_members(program: Steps, members: int) -> list[Steps]:
    """Gives each member's part of a gang's program, by rank in group."""
    first = program._first if isinstance(program._first, tuple) else [None] * members
    parts = _parts(program._steps, members)
    return [program._part(own, ref) for own, ref in zip(parts, first, strict=True)]


def _parts(steps: Sequence[Step | Loop], members: int) -> list[list[Step | Loop]]:
    parts: list[list[Step | Loop]] = [[] for _ in range(members)]
    for step in steps:
        if isinstance(step, Loop):
            for own, inner in zip(parts, _parts(step.steps, members), strict=True):
                own.append(Loop(step.count, inner))
            continue
        for place, options in enumerate(shares(step.operation, dict(step.options), members)):
            given = step.given[place] if isinstance(step.given, tuple) else step.given
            parts[place].append(replace(step, given=given, options=options))
    return parts


def _write(scope: Scope, steps: Sequence[Step | Loop], written: Any, used: Collection[str]) -> None:
    for step in steps:
        it: operation_pb.ProgramStep = written.add()
        if isinstance(step, Loop):
            it.loop.count = step.count
            _write(scope, step.steps, it.loop.steps, used)
            continue
        write_part(it.operation.operation, step.operation, _call(scope, step))
        if step.gives is not None and step.gives.name in used:
            it.operation.name = step.gives.name


def _call(scope: Scope, step: Step) -> Call[Any]:
    given = _standing_for(step.given.name) if isinstance(step.given, Named) else step.given
    return find_operation(step.operation)(scope, *(() if given is None else (given,)), **step.options)


def _standing_for(name: str) -> Ref:
    """Gives what the requests of collectives have in place of a ref: its id alone goes there."""
    return Ref(id=f"%{name}", rank=0, session_id="", dtype="", shape=())
