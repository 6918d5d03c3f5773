"""Programs of LocalGangs: their steps in few words, how to run them, what came of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tests.support.local_gang import LocalGang, a_call

from rankbridge_server.core.coordinator import Coordinator, ReduceOp
from rankbridge_server.core.errors import BridgeError, ErrorCode
from rankbridge_server.core.operations.agreements import Barrier, barrier
from rankbridge_server.core.operations.gathers import AllGather, GatherLayout, all_gather
from rankbridge_server.core.operations.reductions import AllReduce, all_reduce
from rankbridge_server.core.programs.plan import run_program
from rankbridge_server.core.programs.program import ProgramLoop, ProgramOperation, ProgramStep, RunProgram
from rankbridge_server.core.rank import Rank
from rankbridge_server.core.refs.refs import Ref

SIZE = 3
"""Ranks of a gang."""


def add(source: str, name: str = "", *, in_place: bool = False, op: ReduceOp = ReduceOp.SUM) -> ProgramStep:
    """A sum."""
    return ProgramOperation(all_reduce, AllReduce(source, op, in_place), name)


def a_barrier(name: str = "") -> ProgramStep:
    """A barrier."""
    return ProgramOperation(barrier, Barrier(), name)


def gather_ragged(source: str, name: str, layout: GatherLayout = GatherLayout.CONCATENATED) -> ProgramStep:
    """An all_gather of tensors whose shapes differ."""
    return ProgramOperation(all_gather, AllGather(source, layout=layout, ragged=True), name)


def loop(count: int, *steps: ProgramStep) -> ProgramStep:
    """Steps that are repeated."""
    return ProgramLoop(count, steps)


def run(
    gang: LocalGang,
    refs: Sequence[Ref],
    steps: Callable[[str], Sequence[ProgramStep]],
    results: Sequence[str] = (),
    **call: Any,
) -> list[Any]:
    """Run what `steps` makes of each rank's ref id."""
    programs = [RunProgram(tuple(steps(ref.id)), tuple(results)) for ref in refs]
    return gang.run(run_program, programs, **call)


def coordinator_of(rank: Rank) -> Coordinator:
    """Of the group "world"."""
    membership = rank.route(a_call()).group.membership
    assert membership is not None
    return membership.coordinator


def errors(outcomes: list[Any]) -> list[BridgeError]:
    """The same, all of which are errors."""
    assert all(isinstance(it, BridgeError) for it in outcomes), outcomes
    return outcomes


def codes(outcomes: list[Any]) -> set[ErrorCode]:
    """Of errors."""
    return {it.failure.code for it in errors(outcomes)}


def held(gang: LocalGang) -> list[tuple[int, int]]:
    """Refs and bytes of each rank. Its lane gives back the room of an operation after it has answered."""
    return [
        (sum(it.refs for it in rank.refs.usage()), sum(it.bytes for it in rank.refs.usage()))
        for rank in gang.ranks
    ]
