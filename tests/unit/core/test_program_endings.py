"""Programs and what ends before they do: callers, sessions, generations; fake backend."""

from __future__ import annotations

import threading
import weakref

import pytest
from tests.support.local_gang import LocalGang, a_call
from tests.support.programs import SIZE, a_barrier, add, codes, coordinator_of, errors, held, loop, run
from tests.support.waiting import until

from rankbridge_server.core.coordinator import ReduceOp
from rankbridge_server.core.dtype import Dtype
from rankbridge_server.core.errors import BridgeError, ErrorCode
from rankbridge_server.core.programs.plan import run_program
from rankbridge_server.core.programs.program import ProgramStep, RunProgram
from rankbridge_server.core.rank import Rank
from rankbridge_server.core.refs.refs import Ref
from rankbridge_server.core.refs.tensors import Full, TensorSpec


@pytest.fixture
def entered(gang: LocalGang, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The session in which rank 0 enters a barrier; each time, that is closed on it."""
    closed: list[str] = []
    coordinator = coordinator_of(gang.ranks[0])
    enter = coordinator.barrier

    def barrier(timeout: float) -> None:
        closed.append("mine")
        gang.ranks[0].close_session("mine")
        enter(timeout)

    monkeypatch.setattr(coordinator, "barrier", barrier)
    return closed


def test_a_generation_that_ends_ends_its_programs_at_once(gang: LocalGang) -> None:
    refs = gang.full(1)
    before = held(gang)
    program = [
        RunProgram((add(ref.id, in_place=True), loop(999, loop(1000, a_barrier())), add(ref.id, "a")), ("a",))
        for ref in refs
    ]
    tasks = [
        rank.submit(run_program, it, a_call("", "long")) for rank, it in zip(gang.ranks, program, strict=True)
    ]
    until(lambda: all(task.phase.name == "DATA" for task in tasks))
    gang.ranks[0].abort(1, "the test asks for it")
    found = []
    for task in tasks:
        with pytest.raises(BridgeError) as caught:
            task.outcome(60)
        found.append(caught.value.failure)
    assert all(it.indefinite for it in found)
    # The others see it first in the backend, or on the links.
    assert found[0].code is ErrorCode.ABORTED
    assert {it.code for it in found[1:]} <= {ErrorCode.ABORTED, ErrorCode.BACKEND_FAILED}
    # The lanes let go of it, too: a million barriers would take them minutes.
    until(lambda: held(gang) == before)
    assert [gang.floats(ref) for ref in refs] == [[1, 1]] * SIZE


def test_a_program_outlasts_its_callers_timeout(gang: LocalGang, monkeypatch: pytest.MonkeyPatch) -> None:
    coordinator, go = coordinator_of(gang.ranks[0]), threading.Event()
    enter = coordinator.barrier
    monkeypatch.setattr(coordinator, "barrier", lambda timeout: (go.wait(timeout), enter(timeout)))
    refs = gang.full(1)

    def steps(ref: str) -> list[ProgramStep]:
        return [add(ref, "a", in_place=True), loop(2, a_barrier()), add("%a", in_place=True)]

    outcomes = errors(run(gang, refs, steps, ["a"], operation_id="long", timeout=1.5))
    assert codes(outcomes) == {ErrorCode.DEADLINE_EXCEEDED}
    assert {it.failure.indefinite for it in outcomes} == {True}
    assert [gang.floats(ref) for ref in refs] == [[1, 1]] * SIZE
    go.set()
    assert [rank.find("long").outcome(60) for rank in gang.ranks] == [[ref] for ref in refs]
    assert [gang.floats(ref) for ref in refs] == [[9, 9]] * SIZE


def test_a_session_that_is_closed_meanwhile_keeps_nothing(gang: LocalGang, entered: list[str]) -> None:
    before = held(gang)
    refs = [in_session(rank) for rank in gang.ranks]
    cell = gang.ranks[0].refs.find("mine", refs[0].id)
    outcomes = run(
        gang,
        refs,
        lambda ref: [add(ref, in_place=True), add(ref, "a"), a_barrier()],
        ["a"],
        session_id="mine",
    )
    assert entered == ["mine"]
    assert codes(outcomes[:1]) == {ErrorCode.UNKNOWN_SESSION}
    assert outcomes[0].failure.indefinite
    assert list(gang.ranks[0].backend.tensors.read(cell.tensor).cast("f")) == [1, 1]
    assert [gang.floats(kept) for (kept,) in outcomes[1:]] == [[9, 9]] * 2
    assert held(gang)[0] == before[0]


def in_session(rank: Rank) -> Ref:
    """A tensor of ones in a session "mine"."""
    rank.open_session("mine", 0.0)
    spec = TensorSpec(Dtype.FLOAT32, (2,), rank.backend.tensors.device)
    with rank.refs.reserved("mine", spec) as slot:
        return slot.fill(rank.backend.tensors.create(spec, Full(1)))


def test_a_repeated_id_runs_nothing_twice(gang: LocalGang) -> None:
    refs = gang.full(1)
    first = run(gang, refs, lambda ref: [add(ref, "a", in_place=True)], ["a"], operation_id="one")
    assert run(gang, refs, lambda ref: [add(ref, "a", in_place=True)], ["a"], operation_id="one") == first
    assert [gang.floats(ref) for ref in refs] == [[3, 3]] * SIZE


def test_a_lane_keeps_no_tensors_of_a_program_that_is_done(
    gang: LocalGang, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither what was read, nor what was given and not kept: the lane keeps its last job until the next comes."""
    kept: list[weakref.ref[object]] = []
    coordinator = coordinator_of(gang.ranks[0])
    enter = coordinator.all_reduce

    def all_reduce(tensor: object, op: ReduceOp, timeout: float) -> object:
        result = enter(tensor, op, timeout)
        kept.extend(map(weakref.ref, (tensor, result)))
        return result

    monkeypatch.setattr(coordinator, "all_reduce", all_reduce)
    refs = gang.full(1)
    assert run(gang, refs, lambda ref: [add(ref, "a"), add("%a", "a")]) == [[]] * SIZE
    gang.ranks[0].refs.release("", [refs[0].id])
    assert len(kept) == 4
    until(lambda: not any(it() is not None for it in kept))
