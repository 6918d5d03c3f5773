"""Programs through the Python client, on real ranks."""

from __future__ import annotations

import os
import signal
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.support.gangs import RunningGang, up
from tests.support.waiting import until
from tests.unit.client.fronts import connected

import rankbridge
from rankbridge import Program
from rankbridge._plan.operations import Calls

SIZE = 4
LONG = {"fake": 5_000, "gloo": 300}
"""Barriers that mostly take longer than whoever looks meanwhile, by backend."""


@pytest.fixture(
    params=[
        ("sync", "fake4", "ranks"),
        ("async", "fake4", "gang"),
        ("sync", "gloo4", "gang"),
        ("async", "gloo4", "ranks"),
    ],
    ids="-".join,
)
def way(request: pytest.FixtureRequest) -> tuple[str, str, Calls]:
    """A front, a gang, and how it is called: each pair of two of them once."""
    its: tuple[str, str, Calls] = request.param
    return its


@pytest.fixture
def running(way: tuple[str, str, Calls], request: pytest.FixtureRequest) -> RunningGang:
    """A gang of four real ranks."""
    gang: RunningGang = request.getfixturevalue(way[1])
    return gang


@pytest.fixture
def gang(way: tuple[str, str, Calls], running: RunningGang) -> Iterator[Any]:
    """The gang, connected to."""
    front, _, calls = way
    with connected(front, running.description, timeout=60, calls=calls) as gang:
        yield gang


@pytest.fixture
def refs(gang: Any) -> Any:
    """Rank r holds [r, r + 10]."""
    return gang.put([np.array([rank, rank + 10], np.float32) for rank in range(SIZE)])


ROWS = [[0.0, 10.0], [1.0, 11.0], [2.0, 12.0], [3.0, 13.0]]


def lists(gang: Any, refs: Any) -> list[Any]:
    """The elements on each member."""
    return [value.tolist() for value in gang.get(refs)]


def waiting(program: Program, count: int) -> None:
    """Adds so many barriers."""
    with program.loop(count):
        program.barrier()


def test_a_step_takes_what_another_gives(gang: Any, refs: Any) -> None:
    program = Program()
    total = program.all_reduce(refs)
    rows = program.all_gather(total, dim=0)
    program.barrier()
    reduced = program.reduce(refs, op="max", dst_rank_in_group=3)
    listed = program.gather(total, layout="list", dst_rank_in_group=1)
    before = gang.list_refs()
    gathered, largest, stacks = gang.run(program, keep=[rows, reduced, listed])
    assert lists(gang, gathered) == [[6, 46] * SIZE] * SIZE
    assert [ref and gang.get(ref).tolist() for ref in largest] == [None, None, None, [3, 13]]
    assert [own and lists(gang, own) for own in stacks] == [None, [[6, 46]] * SIZE, None, None]
    assert lists(gang, refs) == ROWS
    # What is not kept is freed.
    kept = [gathered, [largest[3]], stacks[1]]
    now = {ref.id for own in gang.list_refs() for ref in own}
    assert now == {ref.id for own in [*before, *kept] for ref in own}


def test_a_program_that_keeps_nothing_gives_nothing(gang: Any, refs: Any) -> None:
    program = Program()
    program.all_reduce(refs, in_place=True)
    waiting(program, 10)
    for turn in (1, SIZE):
        assert gang.run(program) == []
        assert lists(gang, refs) == [[6 * turn, 46 * turn]] * SIZE


def test_a_loop_carries_what_its_last_turn_gave(gang: Any, refs: Any) -> None:
    program = Program()
    total = program.all_reduce(refs)
    with program.loop(3):
        program.all_reduce(total, into=total)
        with program.loop(2):
            largest = program.all_reduce(total, op="max")
            program.all_reduce(largest, into=total)
    last, most = gang.run(program, keep=[total, largest])
    # In each turn: the sum, and twice four times the largest.
    total_of, largest_of = 6.0, 0.0
    for _ in range(3):
        total_of *= SIZE
        for _ in range(2):
            largest_of, total_of = total_of, total_of * SIZE
    assert [value[0] for value in lists(gang, last)] == [total_of] * SIZE
    assert [value[0] for value in lists(gang, most)] == [largest_of] * SIZE


def test_later_steps_see_what_is_changed_in_place_and_refs_have_it_at_the_end(
    gang: Any, running: RunningGang
) -> None:
    count, seen = LONG[running.description["backend"]], 0
    # On a busy machine, whoever looks may take longer.
    while not seen:
        refs = gang.put([np.array(row, np.float32) for row in ROWS])
        program = Program()
        changed = program.all_reduce(refs, in_place=True)
        copies = program.broadcast(refs, src_rank_in_group=1)
        waiting(program, count)
        begun = gang.submit("run_program", program, keep=[changed, copies])
        while True:
            now = lists(gang, refs)
            # It was not done when this had been looked at.
            if any(status.state == "done" for status in begun.poll()):
                break
            assert now == ROWS
            seen += 1
        changed, sent = begun.result()
        assert [ref.id for ref in changed] == [ref.id for ref in refs]
        assert lists(gang, refs) == lists(gang, sent) == [[6, 46]] * SIZE
        count *= 3


def test_where_one_member_cannot_nobody_does(gang: Any, refs: Any) -> None:
    others = gang.put([np.ones(2)] * SIZE)
    program = Program()
    program.all_reduce(refs, in_place=True)
    with program.loop(2):
        program.all_reduce(others, in_place=True)
    gang.release(others[2])
    with pytest.raises(rankbridge.GangError) as caught:
        gang.run(program)
    errors = [outcome.error for outcome in caught.value.outcomes]
    assert isinstance(errors[2], rankbridge.ReleasedRefError)
    assert "step 1.0" in errors[2].message
    assert [error and error.indefinite for error in errors] == [False] * SIZE
    assert lists(gang, refs) == ROWS
    assert lists(gang, [*others[:2], others[3]]) == [[1, 1]] * 3
    gang.barrier()


def test_a_step_that_cannot_be_done_leaves_all_undone(gang: Any, refs: Any) -> None:
    before = gang.list_refs()
    program = Program()
    total = program.all_reduce(refs, in_place=True)
    rows = program.all_gather(total)
    program.all_reduce(rows, into=total)
    with pytest.raises(rankbridge.InvalidArgumentError, match="step 2"):
        gang.run(program, keep=[total])
    assert lists(gang, refs) == ROWS
    assert gang.list_refs() == before
    gang.barrier()


def test_each_rank_runs_its_own_part(gang: Any, refs: Any) -> None:
    def part(ref: rankbridge.Ref, count: int = 3) -> tuple[Program, rankbridge.Named]:
        program = Program()
        total = program.all_reduce(ref)
        with program.loop(count):
            program.all_reduce(total, into=total)
        return program, total

    whole = Program()
    total = whole.all_reduce(refs)
    with whole.loop(3):
        whole.all_reduce(total, into=total)
    (expected,) = gang.run(whole, keep=[total])
    parts = [part(ref) for ref in refs]
    begun = [
        rank.start("run_program", program, keep=[named])
        for rank, (program, named) in zip(gang, parts, strict=True)
    ]
    results = [it.result() for it in begun]
    assert [len(own) for own in results] == [1] * SIZE
    assert lists(gang, [ref for (ref,) in results]) == lists(gang, expected)
    parts = [part(ref, 3 + (ref.rank == 1)) for ref in refs]
    begun = [rank.start("run_program", program) for rank, (program, _) in zip(gang, parts, strict=True)]
    for it in begun:
        with pytest.raises(rankbridge.MismatchError, match="step 1"):
            it.result()
    assert lists(gang, refs) == ROWS


def test_groups_run_programs_and_so_does_one_alone(gang: Any, refs: Any) -> None:
    pair = gang.new_group(f"pair-{uuid.uuid4().hex}", [3, 1])
    alone = gang.new_group(f"alone-{uuid.uuid4().hex}", [2])
    try:
        program = Program()
        total = program.all_reduce([refs[3], refs[1]])
        rows = program.all_gather(total, layout="stacked")
        (stacked,) = gang.run(program, keep=[rows], group=pair)
        assert [ref.rank for ref in stacked] == [3, 1]
        assert lists(gang, stacked) == [[[4, 24]] * 2] * 2
        program = Program()
        own = program.all_gather(program.broadcast(refs[2]), layout="list")
        ((ref,),) = gang[2].run(program, keep=[own], group=alone)
        assert (ref.rank, gang.get(ref).tolist()) == (2, ROWS[2])
    finally:
        gang.destroy_group(pair)
        gang.destroy_group(alone)


def test_a_program_has_the_outcome_of_its_id(gang: Any, refs: Any) -> None:
    program, operation_id = Program(), uuid.uuid4().hex
    total = program.all_reduce(refs, in_place=True)
    first = gang.run(program, keep=[total], operation_id=operation_id)
    assert gang.run(program, keep=[total], operation_id=operation_id) == first
    assert gang.find(operation_id).result() == [[ref] for ref in first[0]]
    assert lists(gang, refs) == [[6, 46]] * SIZE


@pytest.mark.sampled
@pytest.mark.parametrize("calls", ["ranks", "gang"])
def test_a_program_that_takes_longer_than_its_timeout_goes_on(calls: Calls, fake4: RunningGang) -> None:
    with rankbridge.connect(fake4.description) as gang:
        refs = gang.put([np.full(1, rank, np.float32) for rank in range(SIZE)])
        count, error = 1_000, None
        while error is None:
            count *= 3
            program, operation_id = Program(), uuid.uuid4().hex
            total = program.all_reduce(refs)
            waiting(program, count)
            try:
                gang.run(program, keep=[total], timeout=1.5, operation_id=operation_id, calls=calls)
            except rankbridge.DeadlineExceededError as late:
                error = late
        assert error.indefinite
        assert {status.state for status in gang.find(operation_id).poll()} <= {"data", "done"}
        results = gang.find(operation_id).result(timeout=60) or []
        assert lists(gang, [ref for (ref,) in results]) == [[6]] * SIZE


def test_a_rank_that_is_lost_meanwhile_ends_the_program_on_all(tmp_path: Path) -> None:
    with up(tmp_path, 3) as running, rankbridge.connect(running.description, calls="gang") as gang:
        refs = gang.put([np.full(1, rank, np.float32) for rank in range(3)])
        program = Program()
        program.all_reduce(refs, in_place=True)
        waiting(program, 1_000_000 - 1)
        begun = gang.submit("run_program", program)
        until(lambda: all(status.state == "data" for status in begun.poll()))
        os.kill(running.pids[1], signal.SIGKILL)
        with pytest.raises(rankbridge.GangError) as caught:
            begun.result(timeout=30)
        first, gone, last = [outcome.error for outcome in caught.value.outcomes]
        # It is gone, or there is a new one, which knows of nothing.
        assert isinstance(gone, rankbridge.TransportError | rankbridge.UnknownOperationError)
        # The backend fails first, and waits a moment for the links, which tell who is lost.
        for error in (first, last):
            assert isinstance(error, rankbridge.PeerLostError)
            assert [detail.rank for detail in error.ranks] == [1]
            assert error.indefinite
        for rank in (0, 2):
            assert np.asarray(gang[rank].get(refs[rank])).tolist() == [rank]
