"""How gathered tensors are put together, and several collectives as one, on the fake backend."""

from __future__ import annotations

from typing import Any

import pytest
from tests.support.local_gang import LocalGang
from tests.support.waiting import until

from rankbridge_server.core.coordinator import ReduceOp
from rankbridge_server.core.errors import BridgeError, ErrorCode, Failure, RankState
from rankbridge_server.core.limits import Limits
from rankbridge_server.core.operations.agreements import Barrier, barrier
from rankbridge_server.core.operations.all_to_all import AllToAll, all_to_all
from rankbridge_server.core.operations.gathers import AllGather, Gather, GatherLayout, all_gather, gather
from rankbridge_server.core.operations.outcome import Packed
from rankbridge_server.core.operations.point_to_point import SendObject, send_object
from rankbridge_server.core.operations.reductions import AllReduce, Scan, all_reduce, scan
from rankbridge_server.core.programs.plan import coalesce
from rankbridge_server.core.programs.program import Coalesce
from rankbridge_server.core.refs.refs import Ref

SIZE = 3
STACKED, LIST = GatherLayout.STACKED, GatherLayout.LIST
Shape = tuple[int, ...]


def refs_of(gang: LocalGang, shapes: list[Shape]) -> list[Ref]:
    """Rank r holds 100 r, 100 r + 1, ..."""
    return [gang.arange_on(rank, 100 * rank, shape) for rank, shape in enumerate(shapes)]


def read(gang: LocalGang, outcome: Any) -> Any:
    """A ref as its shape and elements, a list as that of each."""
    if isinstance(outcome, list):
        return [read(gang, it) for it in outcome]
    assert isinstance(outcome, Ref), outcome
    return outcome.spec.shape, gang.floats(outcome)


def failures(outcomes: list[Any]) -> list[Failure]:
    assert all(isinstance(outcome, BridgeError) for outcome in outcomes), outcomes
    return [outcome.failure for outcome in outcomes]


def refs_held(gang: LocalGang) -> list[int]:
    """By each rank. Its lane gives back the room of an operation after it has answered."""
    return [sum(it.refs for it in rank.refs.usage()) for rank in gang.ranks]


@pytest.mark.parametrize(
    ("dim", "expected"),
    [
        (None, ((3, 2), [0, 1, 100, 101, 200, 201])),
        (0, ((3, 2), [0, 1, 100, 101, 200, 201])),
        (1, ((2, 3), [0, 100, 200, 1, 101, 201])),
        (-1, ((2, 3), [0, 100, 200, 1, 101, 201])),
    ],
)
def test_stacked_along_a_new_dimension(gang: LocalGang, dim: int | None, expected: Any) -> None:
    args = [AllGather(ref.id, dim, layout=STACKED) for ref in refs_of(gang, [(2,)] * SIZE)]
    assert [read(gang, it) for it in gang.run(all_gather, args)] == [expected] * SIZE


def test_zero_dimensional_tensors_stack_and_list(gang: LocalGang) -> None:
    refs = refs_of(gang, [()] * SIZE)
    stacked = gang.run(all_gather, [AllGather(ref.id, layout=STACKED) for ref in refs])
    assert [read(gang, it) for it in stacked] == [((3,), [0, 100, 200])] * SIZE
    listed = gang.run(all_gather, [AllGather(ref.id, layout=LIST) for ref in refs])
    assert [read(gang, it) for it in listed] == [[((), [0]), ((), [100]), ((), [200])]] * SIZE


def test_listed_at_the_destination_alone(gang: LocalGang) -> None:
    args = [Gather(ref.id, 1, layout=LIST) for ref in refs_of(gang, [(2, 1)] * SIZE)]
    first, second, third = gang.run(gather, args)
    assert (first, third) == (None, None)
    assert read(gang, second) == [((2, 1), [0, 1]), ((2, 1), [100, 101]), ((2, 1), [200, 201])]


def test_listed_with_sizes(gang: LocalGang) -> None:
    args = [AllGather(ref.id, 0, (1, 0, 2), layout=LIST) for ref in refs_of(gang, [(1, 2), (0, 2), (2, 2)])]
    expected = [((1, 2), [0, 1]), ((0, 2), []), ((2, 2), [200, 201, 202, 203])]
    assert [read(gang, it) for it in gang.run(all_gather, args)] == [expected] * SIZE


RAGGED: list[Shape] = [(1, 2), (0, 2), (2, 2)]


def test_ragged_tensors_are_concatenated_without_being_told_their_sizes(gang: LocalGang) -> None:
    args = [AllGather(ref.id, 0, ragged=True) for ref in refs_of(gang, RAGGED)]
    expected = ((3, 2), [0, 1, 200, 201, 202, 203])
    assert [read(gang, it) for it in gang.run(all_gather, args)] == [expected] * SIZE
    gathers = [Gather(ref.id, 2, 0, ragged=True) for ref in refs_of(gang, RAGGED)]
    first, second, third = gang.run(gather, gathers)
    assert (first, second, read(gang, third)) == (None, None, expected)


def test_ragged_tensors_of_any_shape_are_listed(gang: LocalGang) -> None:
    shapes: list[Shape] = [(), (2, 1), (0, 5)]
    args = [AllGather(ref.id, layout=LIST, ragged=True) for ref in refs_of(gang, shapes)]
    expected = [((), [0]), ((2, 1), [100, 101]), ((0, 5), [])]
    assert [read(gang, it) for it in gang.run(all_gather, args)] == [expected] * SIZE


@pytest.mark.parametrize("layout", [GatherLayout.CONCATENATED, STACKED])
def test_ragged_tensors_that_do_not_go_together_are_a_mismatch_on_all(
    gang: LocalGang, layout: GatherLayout
) -> None:
    args = [
        AllGather(ref.id, 0, layout=layout, ragged=True) for ref in refs_of(gang, [(1, 2), (1, 2), (2, 3)])
    ]
    for it in failures(gang.run(all_gather, args)):
        assert (it.code, it.indefinite) == (ErrorCode.MISMATCH, False)
        assert it.got == "[2, 3] of rank 2"
        assert [detail.state for detail in it.ranks] == [RankState.ARRIVED] * 2 + [RankState.DISAGREES]
    assert gang.run(barrier, [Barrier()] * SIZE) == [None] * SIZE


def test_ragged_tensors_that_one_has_no_room_for_change_nothing() -> None:
    gang = LocalGang(SIZE, Limits(max_bytes=64))
    refs = refs_of(gang, [(1,), (2,), (3,)])
    gang.full_on(1, 0, (9,))
    outcomes = failures(gang.run(all_gather, [AllGather(ref.id, ragged=True) for ref in refs]))
    assert {(it.code, it.indefinite) for it in outcomes} == {(ErrorCode.RESOURCE_EXHAUSTED, False)}
    assert [detail.rank for detail in outcomes[0].ranks] == [1]
    until(lambda: refs_held(gang) == [1, 2, 1])


@pytest.mark.parametrize(
    "args", [AllGather("", 0, (2, 2, 2), ragged=True), AllGather("", 0, (2, 2, 2), layout=STACKED)]
)
def test_sizes_are_refused_where_they_say_nothing(gang: LocalGang, args: AllGather) -> None:
    ref = gang.full_on(0, 0)
    outcomes = gang.run(all_gather, [AllGather(ref.id, 0, args.sizes, args.layout, args.ragged), None, None])
    assert [it.code for it in failures(outcomes)] == [ErrorCode.INVALID_ARGUMENT]


def test_members_must_agree_on_the_layout(gang: LocalGang) -> None:
    refs = refs_of(gang, [(2,)] * SIZE)
    layouts = [STACKED, LIST, LIST]
    args = [AllGather(ref.id, 0, layout=layout) for ref, layout in zip(refs, layouts, strict=True)]
    assert {it.code for it in failures(gang.run(all_gather, args))} == {ErrorCode.MISMATCH}


@pytest.mark.parametrize(
    ("exclusive", "expected"),
    [(False, [[0, 1], [100, 102], [300, 303]]), (True, [[0, 0], [0, 1], [100, 102]])],
)
def test_a_scan_reduces_what_those_before_brought(
    gang: LocalGang, exclusive: bool, expected: list[list[float]]
) -> None:
    args = [Scan(ref.id, ReduceOp.SUM, exclusive) for ref in refs_of(gang, [(2,)] * SIZE)]
    assert [read(gang, it) for it in gang.run(scan, args)] == [((2,), it) for it in expected]


def test_a_scan_of_other_ops_is_inclusive(gang: LocalGang) -> None:
    refs = refs_of(gang, [(1,)] * SIZE)
    outcomes = gang.run(scan, [Scan(ref.id, ReduceOp.MAX) for ref in refs])
    assert [read(gang, it)[1] for it in outcomes] == [[0], [100], [200]]
    for args in (Scan(refs[0].id, ReduceOp.MAX, True), Scan(refs[0].id, ReduceOp.AVG)):
        assert [it.code for it in failures(gang.run(scan, [args, None, None]))] == [
            ErrorCode.INVALID_ARGUMENT
        ]


def test_several_collectives_are_one_operation(gang: LocalGang) -> None:
    """With payloads, without, in place and not: none sees what another does."""
    refs = refs_of(gang, [(3,)] * SIZE)
    args = [
        Coalesce(
            (
                (all_reduce, AllReduce(ref.id, ReduceOp.SUM, True)),
                (all_to_all, AllToAll(ref.id, 0, (1, 1, 1), (1, 1, 1))),
                (barrier, Barrier()),
                (gather, Gather(ref.id, 1, ragged=True)),
            )
        )
        for ref in refs
    ]
    outcomes: list[Any] = gang.run(coalesce, args)
    for rank, (summed, exchanged, no_result, gathered) in enumerate(outcomes):
        assert summed == refs[rank]
        assert gang.floats(refs[rank]) == [300, 303, 306]
        assert gang.floats(exchanged) == [rank, 100 + rank, 200 + rank]
        assert no_result is None
        assert (gathered is not None) == (rank == 1)
    assert gang.floats(outcomes[1][3]) == [0, 1, 2, 100, 101, 102, 200, 201, 202]
    assert {rank.group("world").sequence for rank in gang.ranks} == {2}


def test_coalesced_collectives_that_differ_are_a_mismatch(gang: LocalGang) -> None:
    refs = refs_of(gang, [(2,)] * SIZE)
    ops = [ReduceOp.SUM, ReduceOp.SUM, ReduceOp.MAX]
    args = [
        Coalesce(((barrier, Barrier()), (all_reduce, AllReduce(ref.id, op, False))))
        for ref, op in zip(refs, ops, strict=True)
    ]
    assert {it.code for it in failures(gang.run(coalesce, args))} == {ErrorCode.MISMATCH}
    until(lambda: refs_held(gang) == [1] * SIZE)


def test_what_cannot_be_coalesced_is_refused_and_says_which(gang: LocalGang) -> None:
    ref = gang.full_on(0, 0)
    good, bad = (AllReduce(ref_id, ReduceOp.SUM, False) for ref_id in (ref.id, ""))
    cases: list[tuple[Any, str]] = [
        ((), "nothing to coalesce"),
        (((all_reduce, good), (barrier, Barrier()), (all_reduce, bad)), "operation 2, all_reduce"),
        (((send_object, SendObject(Packed(b""), 1)),), "operation 0, send_object"),
    ]
    for operations, message in cases:
        (it,) = failures(gang.run(coalesce, [Coalesce(operations), None, None]))
        assert it.code is ErrorCode.INVALID_ARGUMENT
        assert message in it.message
    assert [usage.refs for usage in gang.ranks[0].refs.usage()] == [1]
