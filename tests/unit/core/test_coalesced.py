"""Coalesced calls: what their parts see, and what is said when they cannot be done; fake backend."""

from __future__ import annotations

from typing import Any

import pytest
from tests.support.local_gang import LocalGang
from tests.support.programs import SIZE, codes, errors, held
from tests.support.waiting import until

from rankbridge_server.core.coordinator import ReduceOp
from rankbridge_server.core.errors import ErrorCode
from rankbridge_server.core.limits import Limits
from rankbridge_server.core.operations.agreements import Barrier, barrier
from rankbridge_server.core.operations.all_to_all import AllToAll, all_to_all
from rankbridge_server.core.operations.gathers import AllGather, all_gather
from rankbridge_server.core.operations.reductions import AllReduce, all_reduce
from rankbridge_server.core.programs.plan import coalesce
from rankbridge_server.core.programs.program import Coalesce

WAITING = (barrier, Barrier())


def adding(ref_id: str, op: ReduceOp = ReduceOp.SUM) -> tuple[Any, Any]:
    return all_reduce, AllReduce(ref_id, op, True)


def test_all_parts_read_what_was_there_and_the_last_change_stays(gang: LocalGang) -> None:
    refs = [gang.full_on(rank, rank + 1) for rank in range(SIZE)]
    args = [
        Coalesce((adding(it.id), (all_gather, AllGather(it.id, 0)), adding(it.id, ReduceOp.MAX)))
        for it in refs
    ]
    outcomes: list[Any] = gang.run(coalesce, args)
    assert [(first, last) for first, _, last in outcomes] == [(it, it) for it in refs]
    assert [gang.floats(gathered) for _, gathered, _ in outcomes] == [[1, 1, 2, 2, 3, 3]] * SIZE
    assert [gang.floats(it) for it in refs] == [[3, 3]] * SIZE


@pytest.mark.parametrize("padding", [0, 300], ids=["short", "long"])
def test_a_mismatch_says_which_operation_differs_first(gang: LocalGang, padding: int) -> None:
    refs = gang.full(1)
    ops = [ReduceOp.SUM, ReduceOp.SUM, ReduceOp.MAX]
    args = [
        Coalesce((*[WAITING] * padding, WAITING, adding(it.id, op))) for it, op in zip(refs, ops, strict=True)
    ]
    outcomes = errors(gang.run(coalesce, args))
    assert codes(outcomes) == {ErrorCode.MISMATCH}
    assert f"differ first in operation {padding + 1}" in str(outcomes[0])
    assert len(outcomes[0].failure.expected) < 5_000


def test_a_rank_without_room_for_ragged_tensors_stops_all() -> None:
    gang = LocalGang(SIZE, Limits(max_bytes=40))
    refs = [gang.arange_on(rank, rank, (rank + 1,)) for rank in range(SIZE)]
    gang.full_on(2, 0, (4,))
    before = held(gang)
    args = [Coalesce((WAITING, (all_gather, AllGather(it.id, ragged=True)))) for it in refs]
    outcomes = errors(gang.run(coalesce, args))
    assert codes(outcomes) == {ErrorCode.RESOURCE_EXHAUSTED}
    assert {it.failure.indefinite for it in outcomes} == {False}
    assert [[detail.rank for detail in it.failure.ranks] for it in outcomes] == [[2]] * SIZE
    until(lambda: held(gang) == before)
    for rank in gang.ranks:
        rank.close("the test is over")


def test_a_part_that_fails_when_it_runs_is_named_and_nothing_has_changed(gang: LocalGang) -> None:
    refs = gang.full(1, (3,))
    received = [(1, 1, 1), (1, 1, 1), (2, 1, 1)]
    args = [
        Coalesce((adding(it.id), (all_to_all, AllToAll(it.id, 0, (1, 1, 1), sizes))))
        for it, sizes in zip(refs, received, strict=True)
    ]
    before = held(gang)
    outcomes = errors(gang.run(coalesce, args))
    assert codes(outcomes) == {ErrorCode.MISMATCH}
    assert all("operation 1, all_to_all: " in str(it) for it in outcomes)
    assert [gang.floats(it) for it in refs] == [[1, 1, 1]] * SIZE
    until(lambda: held(gang) == before)
