"""Programs of which shapes are known only when all members have told theirs; fake backend."""

from __future__ import annotations

import pytest
from tests.support.local_gang import LocalGang
from tests.support.programs import (
    SIZE,
    a_barrier,
    add,
    codes,
    coordinator_of,
    errors,
    gather_ragged,
    held,
    loop,
    run,
)
from tests.support.waiting import until

from rankbridge_server.core.coordinator import ReduceOp
from rankbridge_server.core.errors import ErrorCode
from rankbridge_server.core.limits import Limits
from rankbridge_server.core.operations.gathers import AllGather, GatherLayout, all_gather
from rankbridge_server.core.programs.program import ProgramOperation, ProgramStep


@pytest.fixture
def entered(gang: LocalGang, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What rank 0 enters."""
    its: list[str] = []
    coordinator = coordinator_of(gang.ranks[0])
    enter = coordinator.barrier

    def barrier(timeout: float) -> None:
        its.append("barrier")
        enter(timeout)

    monkeypatch.setattr(coordinator, "barrier", barrier)
    return its


def test_what_they_give_is_taken_by_later_steps(gang: LocalGang) -> None:
    refs = [gang.arange_on(rank, 10 * rank, (rank,)) for rank in range(SIZE)]
    before, sequence = held(gang), gang.ranks[0].group("world").sequence

    def steps(ref: str) -> list[ProgramStep]:
        return [
            a_barrier(),
            gather_ragged(ref, "all"),
            loop(2, add("%all", "sum"), gather_ragged("%sum", "twice")),
            add("%twice", "all_of_it", in_place=True),
        ]

    outcomes = run(gang, refs, steps, ["all", "sum", "twice", "all_of_it"])
    assert [gang.floats(it[0]) for it in outcomes] == [[10, 20, 21]] * SIZE
    assert [gang.floats(it[1]) for it in outcomes] == [[30, 60, 63]] * SIZE
    assert [gang.floats(it[2]) for it in outcomes] == [[90, 180, 189] * 3] * SIZE
    assert [it[2] for it in outcomes] == [it[3] for it in outcomes]
    until(lambda: held(gang) == [(refs + 3, size + 4 * (3 + 3 + 9)) for refs, size in before])
    # Once for all that is known ahead; then room and contract of what takes the first gather; then room of the
    # second, and of what takes that.
    assert gang.ranks[0].group("world").sequence == sequence + 1 + 2 + 2


def test_a_list_of_them_is_kept(gang: LocalGang) -> None:
    refs = [gang.arange_on(rank, 10 * rank, (rank,)) for rank in range(SIZE)]
    outcomes = run(gang, refs, lambda ref: [gather_ragged(ref, "all", GatherLayout.LIST)], ["all"])
    assert [[gang.floats(it) for it in kept] for (kept,) in outcomes] == [[[], [10], [20, 21]]] * SIZE


def test_shapes_that_do_not_go_together_are_a_mismatch_before_anything_runs(
    gang: LocalGang, entered: list[str]
) -> None:
    refs = [gang.arange_on(rank, 0, (2, 1 + (rank == 2))) for rank in range(SIZE)]

    def steps(ref: str) -> list[ProgramStep]:
        return [a_barrier(), ProgramOperation(all_gather, AllGather(ref, 0, ragged=True), "a")]

    outcomes = errors(run(gang, refs, steps, ["a"]))
    assert codes(outcomes) == {ErrorCode.MISMATCH}
    assert {it.failure.indefinite for it in outcomes} == {False}
    assert "step 1, all_gather" in str(outcomes[0])
    assert not entered


def test_a_rank_without_room_stops_all() -> None:
    gang = LocalGang(SIZE, Limits(max_bytes=40))
    refs = [gang.arange_on(rank, rank, (rank + 1,)) for rank in range(SIZE)]
    gang.full_on(2, 0, (4,))
    before = held(gang)
    outcomes = errors(run(gang, refs, lambda ref: [gather_ragged(ref, "all")], ["all"]))
    assert codes(outcomes) == {ErrorCode.RESOURCE_EXHAUSTED}
    assert {it.failure.indefinite for it in outcomes} == {False}
    assert [detail.rank for detail in outcomes[0].failure.ranks] == [2]
    assert "step 0, all_gather: no room" in str(outcomes[2])
    until(lambda: held(gang) == before)
    for rank in gang.ranks:
        rank.close("the test is over")


def test_members_that_take_other_things_later_are_a_mismatch(gang: LocalGang) -> None:
    refs = [gang.arange_on(rank, 10 * rank, (rank,)) for rank in range(SIZE)]
    ops = iter([ReduceOp.SUM, ReduceOp.SUM, ReduceOp.MAX])
    before = held(gang)
    outcomes = errors(
        run(gang, refs, lambda ref: [gather_ragged(ref, "all"), add("%all", "x", op=next(ops))], ["x"])
    )
    assert codes(outcomes) == {ErrorCode.MISMATCH}
    assert "differ first in step 1" in str(outcomes[0])
    until(lambda: held(gang) == before)
