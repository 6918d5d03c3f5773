"""Programs: what their steps see of each other, what is kept, and what of it is seen from outside; fake backend."""

from __future__ import annotations

from typing import Any

from tests.support.local_gang import LocalGang, a_call
from tests.support.programs import SIZE, a_barrier, add, codes, errors, held, loop, run
from tests.support.waiting import until

from rankbridge_server.core.coordinator import ReduceOp
from rankbridge_server.core.errors import ErrorCode
from rankbridge_server.core.operations.all_to_all import AllToAll, all_to_all
from rankbridge_server.core.operations.gathers import AllGather, Gather, GatherLayout, all_gather, gather
from rankbridge_server.core.operations.outcome import weight_of
from rankbridge_server.core.operations.reductions import AllReduce, ReduceScatter, all_reduce, reduce_scatter
from rankbridge_server.core.programs.plan import run_program
from rankbridge_server.core.programs.program import ProgramOperation, ProgramStep, RunProgram


def test_a_step_takes_what_another_has_given(gang: LocalGang) -> None:
    refs = gang.full(1)
    before, sequence = held(gang), gang.ranks[0].group("world").sequence
    outcomes = run(gang, refs, lambda ref: [add(ref, "a"), add("%a", "b"), a_barrier()], ["b"])
    assert [gang.floats(kept) for (kept,) in outcomes] == [[9, 9]] * SIZE
    assert [gang.floats(ref) for ref in refs] == [[1, 1]] * SIZE
    # What was not kept takes no room any more; and all of it was admitted at once.
    until(lambda: held(gang) == [(refs + 1, size + 8) for refs, size in before])
    assert gang.ranks[0].group("world").sequence == sequence + 1


def test_results_come_in_their_order_and_as_single_collectives_give_them(gang: LocalGang) -> None:
    def steps(ref: str) -> list[ProgramStep]:
        at_one = Gather(ref, 1, layout=GatherLayout.LIST)
        return [add(ref, "sum"), ProgramOperation(gather, at_one, "list"), a_barrier("nothing")]

    outcomes = run(gang, gang.full(2), steps, ["nothing", "list", "sum"])
    assert [it[0] for it in outcomes] == [None] * SIZE
    assert [it[1] is None for it in outcomes] == [True, False, True]
    assert [gang.floats(ref) for ref in outcomes[1][1]] == [[2, 2]] * SIZE
    assert [gang.floats(it[2]) for it in outcomes] == [[6, 6]] * SIZE


def test_a_program_without_results_gives_an_empty_list(gang: LocalGang) -> None:
    refs = gang.full(1)
    before = held(gang)
    assert run(gang, refs, lambda ref: [add(ref), add(ref, "unused")]) == [[]] * SIZE
    until(lambda: held(gang) == before)


def test_loops_repeat_and_nest(gang: LocalGang) -> None:
    def steps(ref: str) -> list[ProgramStep]:
        return [add(ref, "x"), loop(2, add("%x", "x"), loop(2, add("%x", "x")), a_barrier())]

    outcomes = run(gang, gang.full(1), steps, ["x"])
    assert [gang.floats(kept) for (kept,) in outcomes] == [[3.0**7] * 2] * SIZE


def test_what_is_changed_in_place_is_seen_by_the_steps_that_follow(gang: LocalGang) -> None:
    refs = gang.full(1)
    before = held(gang)
    outcomes = run(gang, refs, lambda ref: [loop(3, add(ref, in_place=True)), add(ref, "sum")], ["sum"])
    assert [gang.floats(ref) for ref in refs] == [[27, 27]] * SIZE
    assert [gang.floats(kept) for (kept,) in outcomes] == [[81, 81]] * SIZE
    until(lambda: held(gang) == [(refs + 1, size + 8) for refs, size in before])


def test_a_name_of_what_was_changed_in_place_is_the_same_tensor(gang: LocalGang) -> None:
    refs = gang.full(1)

    def steps(ref: str) -> list[ProgramStep]:
        return [
            add(ref, "same", in_place=True),
            add("%same", in_place=True),
            add(ref, "a"),
            add("%a", "a", in_place=True),
        ]

    outcomes = run(gang, refs, steps, ["same", "a"])
    assert [it[0] for it in outcomes] == refs
    assert [gang.floats(ref) for ref in refs] == [[9, 9]] * SIZE
    assert [gang.floats(it[1]) for it in outcomes] == [[81, 81]] * SIZE


def test_a_tensor_under_two_names_is_one_ref(gang: LocalGang) -> None:
    refs = gang.full(1)
    before = held(gang)
    outcomes = run(gang, refs, lambda ref: [add(ref, "a"), add("%a", "b", in_place=True)], ["a", "b"])
    assert [it[0] for it in outcomes] == [it[1] for it in outcomes]
    assert [gang.floats(it[0]) for it in outcomes] == [[9, 9]] * SIZE
    until(lambda: held(gang) == [(refs + 1, size + 8) for refs, size in before])


def test_it_reads_refs_as_they_are_when_it_runs(gang: LocalGang) -> None:
    refs = gang.full(1)
    programs = [RunProgram((add(ref.id, "sum"),), ("sum",)) for ref in refs]
    queued = [
        [
            gang.ranks[it].submit(all_reduce, AllReduce(refs[it].id, ReduceOp.SUM, True), a_call()),
            gang.ranks[it].submit(run_program, programs[it], a_call()),
        ]
        for it in range(SIZE)
    ]
    outcomes: list[Any] = [tasks[1].wait() for tasks in queued]
    assert [gang.floats(kept) for (kept,) in outcomes] == [[9, 9]] * SIZE


def test_collectives_with_sizes_of_their_own_follow_each_other(gang: LocalGang) -> None:
    refs = [gang.arange_on(rank, 10 * rank, (3,)) for rank in range(SIZE)]

    def steps(ref: str) -> list[ProgramStep]:
        there = ProgramOperation(all_to_all, AllToAll(ref, 0, (1, 1, 1), (1, 1, 1)), "turned")
        back = ProgramOperation(all_to_all, AllToAll("%turned", 0, (1, 1, 1), (1, 1, 1)), "turned")
        part = ProgramOperation(reduce_scatter, ReduceScatter("%turned", ReduceOp.SUM, -1, (1, 1, 1)), "part")
        whole = ProgramOperation(all_gather, AllGather("%part", sizes=(1, 1, 1)), "whole")
        return [loop(4, there, back), part, whole]

    outcomes = run(gang, refs, steps, ["turned", "whole"])
    assert [gang.floats(it[0]) for it in outcomes] == [
        [10.0 * it, 10 * it + 1, 10 * it + 2] for it in range(3)
    ]
    assert [gang.floats(it[1]) for it in outcomes] == [[30, 33, 36]] * SIZE


def test_sizes_that_do_not_fit_each_other_change_nothing(gang: LocalGang) -> None:
    refs = [gang.arange_on(rank, 10 * rank, (3,)) for rank in range(SIZE)]
    before = held(gang)
    received = iter([(1, 1, 1), (1, 1, 1), (2, 1, 1)])

    def steps(ref: str) -> list[ProgramStep]:
        turn = ProgramOperation(all_to_all, AllToAll(ref, 0, (1, 1, 1), next(received)), "turned")
        return [add(ref, "sum", in_place=True), turn]

    outcomes = errors(run(gang, refs, steps, ["turned", "sum"]))
    assert codes(outcomes) == {ErrorCode.MISMATCH}
    assert {it.failure.indefinite for it in outcomes} == {False}
    assert "step 1, all_to_all" in str(outcomes[0])
    assert [gang.floats(ref) for ref in refs] == [[10.0 * it, 10 * it + 1, 10 * it + 2] for it in range(3)]
    until(lambda: held(gang) == before)


def test_programs_are_weighed_by_their_steps() -> None:
    one, many = RunProgram((a_barrier(),)), RunProgram((loop(2, *[a_barrier()] * 99),))
    assert weight_of(("run_program", one)) > 0
    assert weight_of(("run_program", many)) == 100 * weight_of(("run_program", one))
