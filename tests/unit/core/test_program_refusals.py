"""Programs that are wrong, have no room, or are not those of the others; fake backend."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from tests.support.local_gang import LocalGang, a_call
from tests.support.programs import SIZE, a_barrier, add, codes, errors, held, loop, run
from tests.support.waiting import until

from rankbridge_server.core.errors import BridgeError, ErrorCode
from rankbridge_server.core.limits import Limits
from rankbridge_server.core.operations.agreements import Barrier, Ping, barrier, ping
from rankbridge_server.core.operations.gathers import AllGather, GatherLayout, all_gather
from rankbridge_server.core.operations.moves import Broadcast, broadcast
from rankbridge_server.core.programs.plan import run_program
from rankbridge_server.core.programs.program import (
    MAX_DEPTH,
    MAX_STEPS,
    ProgramOperation,
    ProgramStep,
    RunProgram,
)


def too_deep() -> ProgramStep:
    step = a_barrier()
    for _ in range(MAX_DEPTH + 1):
        step = loop(1, step)
    return step


REFUSED: dict[str, tuple[Callable[[str], Sequence[ProgramStep]], Sequence[str], str]] = {
    "empty": (lambda ref: [], [], "the program is empty"),
    "count 0": (lambda ref: [a_barrier(), loop(0, a_barrier())], [], "step 1: the loop has no count"),
    "empty loop": (lambda ref: [loop(2, a_barrier(), loop(3))], [], "step 0.1: the loop is empty"),
    "too deep": (lambda ref: [too_deep()], [], r"step 0(\.0){32}: too many loops"),
    "too long": (
        lambda ref: [a_barrier()] * (MAX_STEPS + 1),
        [],
        "too long .expected at most 1000 steps, got 1001",
    ),
    "too much": (lambda ref: [loop(1001, loop(1000, a_barrier()))], [], "got 1001000"),
    "unknown name": (lambda ref: [add("%a")], [], "step 0, all_reduce: no earlier step gives 'a'"),
    "name of a later step": (lambda ref: [add("%a", "b"), add(ref, "a")], [], "step 0, .*'a'"),
    "carried before it is given": (
        lambda ref: [a_barrier(), loop(2, a_barrier(), add("%a", "b"), add(ref, "a"))],
        [],
        "step 1.1, all_reduce: no earlier step gives 'a'",
    ),
    "takes nothing": (lambda ref: [a_barrier("a"), add("%a")], [], "step 1, .*not one tensor .*got nothing"),
    "takes a list": (
        lambda ref: [ProgramOperation(all_gather, AllGather(ref, layout=GatherLayout.LIST), "a"), add("%a")],
        [],
        "step 1, .*got a list of 3",
    ),
    "given again as another shape": (
        lambda ref: [add(ref, "a"), loop(2, a_barrier(), ProgramOperation(all_gather, AllGather("%a"), "a"))],
        [],
        r"step 1.1, all_gather: 'a' is given again as something else .*float32\[2\] of %a, got float32\[6\]",
    ),
    "given again as nothing": (lambda ref: [add(ref, "a"), a_barrier("a")], [], "step 1, .*got nothing"),
    "a name of a ref is given again": (
        lambda ref: [add(ref, "a", in_place=True), add(ref, "a")],
        [],
        "step 1, .*given again as something else",
    ),
    "a name given again as that of another": (
        lambda ref: [add(ref, "a"), add(ref, "a", in_place=True)],
        [],
        "step 1, .*given again as something else",
    ),
    "no name": (lambda ref: [a_barrier("a%b")], [], "step 0: this cannot be a name"),
    "long name": (lambda ref: [a_barrier("x" * 129)], [], "step 0: this cannot be a name"),
    "no result name": (lambda ref: [a_barrier("a")], ["a", ""], "result 1: this cannot be a name"),
    "result with a sign": (lambda ref: [a_barrier("a")], ["%a"], "result 0: this cannot be a name"),
    "result twice": (
        lambda ref: [a_barrier("a"), a_barrier("b")],
        ["a", "b", "a"],
        "result 2 is there twice",
    ),
    "result never given": (lambda ref: [add(ref, "a")], ["b"], "result 0: no step gives 'b' .*'a'"),
    "no collective": (
        lambda ref: [ProgramOperation(ping, Ping())],
        [],
        "step 0: this cannot be in a program .*got ping",
    ),
    "a program in a program": (
        lambda ref: [ProgramOperation(run_program, RunProgram((a_barrier(),)))],
        [],
        "step 0: this cannot be in a program",
    ),
    "a wrong argument": (
        lambda ref: [loop(2, ProgramOperation(all_gather, AllGather(ref, dim=5)))],
        [],
        "step 0.0, all_gather: dim is out of range",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_wrong_is_refused_at_once_and_changes_nothing(gang: LocalGang, case: str) -> None:
    steps, results, message = REFUSED[case]
    refs = gang.full(1)
    before = held(gang)
    outcomes = errors(run(gang, refs, steps, results))
    assert codes(outcomes) == {ErrorCode.INVALID_ARGUMENT}
    for error in outcomes:
        assert not error.failure.indefinite
        assert re.search(message, str(error)), error
    until(lambda: held(gang) == before)
    assert gang.ranks[0].group("world").sequence == 0


def test_refs_and_ranks_are_checked_as_for_a_single_collective(gang: LocalGang) -> None:
    gone = gang.full(1)
    for ref in gone:
        gang.ranks[ref.rank].refs.release("", [ref.id])
    assert codes(run(gang, gone, lambda ref: [a_barrier(), add(ref)])) == {ErrorCode.RELEASED_REF}
    out_of_range = [ProgramOperation(broadcast, Broadcast(gang.full(1)[0].id, SIZE, False))]
    (error,) = errors(gang.run(run_program, [RunProgram(tuple(out_of_range)), None, None]))
    assert error.failure.code is ErrorCode.RANK_OUT_OF_RANGE
    assert "step 0, broadcast: src_rank_in_group is not in the group" in str(error)


def test_room_is_needed_for_every_name_and_for_the_largest_that_is_dropped() -> None:
    gang = LocalGang(1, Limits(max_bytes=32))
    refs = gang.full(1)
    assert codes(run(gang, refs, lambda ref: [add(ref, it) for it in "abcd"])) == {
        ErrorCode.RESOURCE_EXHAUSTED
    }
    until(lambda: held(gang) == [(1, 8)])
    assert run(gang, refs, lambda ref: [loop(5, add(ref)), add(ref), add(ref, "a"), add("%a", "b")]) == [[]]
    assert codes(run(gang, refs, lambda ref: [*(add(ref, it) for it in "abc"), add(ref)])) == {
        ErrorCode.RESOURCE_EXHAUSTED
    }
    until(lambda: held(gang) == [(1, 8)])
    gang.ranks[0].close("the test is over")


def mismatch(gang: LocalGang, steps: Callable[[int], Sequence[ProgramStep]], names: Sequence[str]) -> str:
    """What rank 0 is told when rank 2 has another program."""
    programs = [RunProgram(tuple(steps(rank)), (names[rank],)) for rank in range(SIZE)]
    outcomes = errors(gang.run(run_program, programs))
    assert codes(outcomes) == {ErrorCode.MISMATCH}
    assert {it.failure.indefinite for it in outcomes} == {False}
    return str(outcomes[0])


@pytest.mark.parametrize("length", [1, 300])
def test_members_with_other_programs_are_a_mismatch_that_says_where(gang: LocalGang, length: int) -> None:
    refs, halves = gang.full(1), gang.full(1, (1,))
    padding = [a_barrier()] * length
    before = held(gang)

    def steps(rank: int) -> list[ProgramStep]:
        return [add(refs[rank].id, "a"), *padding, loop(2, a_barrier(), add("%a", "a"))]

    names = ["a", "a", "a"]
    last = length + 1
    assert "differ first in what is kept" in mismatch(
        gang, lambda rank: [*steps(rank), a_barrier("b")], ["a", "a", "b"]
    )
    counts = mismatch(gang, lambda rank: [*steps(rank), loop(2 + (rank == 2), a_barrier())], names)
    assert f"differ first in step {last + 1}" in counts
    inner = mismatch(gang, lambda rank: [*steps(rank)[:-1], loop(2, add("%a", "ab"[rank == 2]))], names)
    assert f"differ first in step {last}.0" in inner
    shapes = mismatch(gang, lambda rank: [a_barrier(), add([refs, halves][rank == 2][rank].id, "a")], names)
    assert "differ first in step 1" in shapes
    longer = mismatch(gang, lambda rank: [*steps(rank), *[a_barrier()] * (400 if rank == 2 else 0)], names)
    assert f"differ first in step {last + 1}" in longer
    other: list[Any] = gang.missed(barrier, [Barrier(), None, None], timeout=0.2)
    assert codes(other) == {ErrorCode.PEER_MISSING}
    until(lambda: held(gang) == before)


def test_a_program_and_something_else_are_a_mismatch(gang: LocalGang) -> None:
    program = RunProgram((a_barrier(),))
    tasks = [rank.submit(run_program, program, a_call()) for rank in gang.ranks[:2]]
    tasks.append(gang.ranks[2].submit(barrier, Barrier(), a_call()))
    for task in tasks:
        with pytest.raises(BridgeError, match="MISMATCH in #1 on world") as caught:
            task.wait()
        assert caught.value.failure.code is ErrorCode.MISMATCH
