"""What each collective checks, agrees on and gives, on the fake backend."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from tests.support.local_gang import LocalGang
from tests.support.waiting import until

from rankbridge_server.core.coordinator import ReduceOp
from rankbridge_server.core.dtype import Dtype
from rankbridge_server.core.errors import BridgeError, ErrorCode, Failure, Phase, RankState
from rankbridge_server.core.limits import Limits
from rankbridge_server.core.operations.agreements import Barrier, barrier
from rankbridge_server.core.operations.all_to_all import AllToAll, all_to_all
from rankbridge_server.core.operations.gathers import AllGather, Gather, all_gather, gather
from rankbridge_server.core.operations.moves import Broadcast, Scatter, broadcast, scatter
from rankbridge_server.core.operations.operation import Operation
from rankbridge_server.core.operations.outcome import Outcome
from rankbridge_server.core.operations.reductions import (
    AllReduce,
    Reduce,
    ReduceScatter,
    all_reduce,
    reduce,
    reduce_scatter,
)
from rankbridge_server.core.refs.refs import Ref

SIZE = 3
SHORT_S = 0.2
"""Of calls that somebody does not come to."""

SHAPE = (9, 9)
"""Of every rank's tensor, where a test says no other; ranks that get a part of one have another, (3, 9)."""

DECLARED: list[tuple[Operation[Any], Any]] = [
    (broadcast, Broadcast("", 0, False)),
    (scatter, Scatter("", 0, 0)),
    (gather, Gather("", 0, 0)),
    (all_gather, AllGather("", 0)),
    (reduce, Reduce("", ReduceOp.SUM, 0)),
    (all_reduce, AllReduce("", ReduceOp.SUM, False)),
    (reduce_scatter, ReduceScatter("", ReduceOp.SUM, 0, (2, 3, 4))),
    (all_to_all, AllToAll("", 0)),
]
"""Every collective on tensors, with arguments that fit SHAPE on all ranks."""

SUMS = {scatter: (9,), reduce_scatter: (0, 9), gather: (27,), all_gather: (27,)}
"""Of sizes that fit SHAPE."""

OTHERS: dict[str, tuple[Any, ...]] = {
    "op": (ReduceOp.MAX,),
    "dim": (1,),
    "src_rank_in_group": (1,),
    "dst_rank_in_group": (1,),
    "sizes": ((9, 9, 9), (3, 3, 3), ()),
}
"""What can be said instead."""


VARIANTS: list[tuple[Operation[Any], Any, Any]] = [
    (operation, args, replace(args, **{name: other}))
    for operation, args in DECLARED
    for name, others in OTHERS.items()
    for other in others
    if getattr(args, name, other) != other and (name != "sizes" or sum(other) in SUMS[operation])
]
"""Every collective, with arguments and others that differ from them in one."""


def inputs(gang: LocalGang, operation: Operation[Any]) -> list[Ref]:
    """Rank r holds 100 r, 100 r + 1, ..."""
    shapes = [SHAPE, (3, 9), (3, 9)] if operation is scatter else [SHAPE] * SIZE
    return [gang.arange_on(rank, 100 * rank, shape) for rank, shape in enumerate(shapes)]


def on(refs: list[Ref], args: Any) -> list[Any]:
    """The same arguments for every rank's ref."""
    return [replace(args, ref_id=ref.id) for ref in refs]


def failure(outcome: Outcome | Exception | None) -> Failure:
    assert isinstance(outcome, BridgeError), outcome
    return outcome.failure


def shape(outcome: Outcome | Exception) -> tuple[int, ...] | None:
    assert outcome is None or isinstance(outcome, Ref), outcome
    return None if outcome is None else outcome.spec.shape


def is_as_before(gang: LocalGang, refs: list[Ref]) -> None:
    """No input has changed, no room is held, and the group is good."""
    elements = [ref.spec.elements for ref in refs]
    assert [gang.floats(ref) for ref in refs] == [
        [100.0 * rank + i for i in range(count)] for rank, count in enumerate(elements)
    ]

    def held() -> list[tuple[int, int]]:
        return [(usage.refs, usage.bytes) for rank in gang.ranks for usage in rank.refs.usage()]

    # A lane gives room back after it has answered.
    until(lambda: held() == [(1, 4 * count) for count in elements])
    assert gang.run(barrier, [Barrier()] * SIZE) == [None] * SIZE


def by_name(param: Any) -> str:
    return param.name if isinstance(param, Operation) else ""


@pytest.mark.parametrize(("operation", "args", "other"), VARIANTS, ids=by_name)
@pytest.mark.parametrize("odd", range(SIZE))
def test_members_that_ask_for_different_things_are_all_told_both_sides(
    gang: LocalGang, operation: Operation[Any], args: Any, other: Any, odd: int
) -> None:
    refs = inputs(gang, operation)
    asked = on(refs, args)
    asked[odd] = replace(other, ref_id=refs[odd].id)
    failures = [failure(it) for it in gang.run(operation, asked)]
    assert {it.code for it in failures} == {ErrorCode.MISMATCH}
    assert not any(it.indefinite for it in failures)
    assert len({it.expected for it in failures}) == 2
    assert {it.expected for it in failures} == {it.got for it in failures}
    is_as_before(gang, refs)


@pytest.mark.parametrize(("operation", "args"), DECLARED, ids=by_name)
@pytest.mark.parametrize("absent", [0, 2])
def test_a_member_that_does_not_come_is_named_to_all_others(
    gang: LocalGang, operation: Operation[Any], args: Any, absent: int
) -> None:
    refs = inputs(gang, operation)
    asked = [None if rank == absent else it for rank, it in enumerate(on(refs, args))]
    failures = [failure(it) for it in gang.missed(operation, asked, timeout=SHORT_S)]
    assert [(it.code, it.phase, it.indefinite) for it in failures] == [
        (ErrorCode.PEER_MISSING, Phase.ADMISSION, False)
    ] * (SIZE - 1)
    states = [it.ranks[absent].state for it in failures]
    assert states == [RankState.MISSING] * (SIZE - 1)
    is_as_before(gang, refs)


@pytest.mark.parametrize(("operation", "args"), DECLARED, ids=by_name)
def test_what_is_refused_changes_nothing(gang: LocalGang, operation: Operation[Any], args: Any) -> None:
    refs = inputs(gang, operation)
    for wrong, code in {"": ErrorCode.INVALID_ARGUMENT, "nonsense": ErrorCode.UNKNOWN_REF}.items():
        outcomes = gang.run(operation, [replace(args, ref_id=wrong)] * SIZE)
        assert [failure(it).code for it in outcomes] == [code] * SIZE
    for name in ("src_rank_in_group", "dst_rank_in_group"):
        for rank in (-1, SIZE):
            if hasattr(args, name):
                outcomes = gang.run(operation, on(refs, replace(args, **{name: rank})))
                assert [failure(it).code for it in outcomes] == [ErrorCode.RANK_OUT_OF_RANGE] * SIZE
                assert name in failure(outcomes[0]).message
    for dim in (-3, 2):
        if hasattr(args, "dim"):
            outcomes = gang.run(operation, on(refs, replace(args, dim=dim)))
            assert [failure(it).code for it in outcomes] == [ErrorCode.INVALID_ARGUMENT] * SIZE
            assert (failure(outcomes[0]).expected, failure(outcomes[0]).got) == ("-2 to 1", str(dim))
    is_as_before(gang, refs)


@pytest.mark.parametrize("dst", range(SIZE))
def test_reduce_gives_the_destination_a_ref_and_the_others_none(gang: LocalGang, dst: int) -> None:
    refs = inputs(gang, reduce)
    outcomes = gang.run(reduce, on(refs, Reduce("", ReduceOp.MAX, dst)))
    assert [shape(it) for it in outcomes] == [SHAPE if rank == dst else None for rank in range(SIZE)]
    (result,) = [it for it in outcomes if isinstance(it, Ref)]
    assert gang.floats(result) == [200.0 + i for i in range(81)]
    gang.ranks[dst].refs.release("", [result.id])
    is_as_before(gang, refs)


@pytest.mark.parametrize(("operation", "args"), [it for it in DECLARED if hasattr(it[1], "op")], ids=by_name)
def test_a_reduction_that_the_backend_lacks_is_refused(
    gang: LocalGang, operation: Operation[Any], args: Any
) -> None:
    refs = gang.full(1, dtype=Dtype.FLOAT8_E5M2)
    outcomes = gang.run(operation, on(refs, args))
    assert [failure(it).code for it in outcomes] == [ErrorCode.UNSUPPORTED_DTYPE] * SIZE
    assert f"{operation.name} with op 'sum' for dtype float8_e5m2" in failure(outcomes[0]).message


@pytest.mark.parametrize("src", range(SIZE))
def test_scatter_gives_every_member_its_part_and_leaves_what_it_named(gang: LocalGang, src: int) -> None:
    refs = [gang.arange_on(rank, 100 * rank, (2, 6) if rank == src else (2, 2)) for rank in range(SIZE)]
    outcomes = gang.run(scatter, on(refs, Scatter("", src, -1)))
    assert [shape(it) for it in outcomes] == [(2, 2)] * SIZE
    for rank, outcome in enumerate(outcomes):
        assert isinstance(outcome, Ref)
        first = 100.0 * src + 2 * rank
        assert gang.floats(outcome) == [first, first + 1, first + 6, first + 7]
        gang.ranks[rank].refs.release("", [outcome.id])
    is_as_before(gang, refs)


def test_scatter_in_sizes_gives_every_member_its_part(gang: LocalGang) -> None:
    sizes = (1, 0, 5)
    refs = [gang.arange_on(rank, 100 * rank, (2, (1, 6, 5)[rank])) for rank in range(SIZE)]
    outcomes = gang.run(scatter, on(refs, Scatter("", 1, -1, sizes)))
    assert [shape(it) for it in outcomes] == [(2, size) for size in sizes]
    for rank, outcome in enumerate(outcomes):
        assert isinstance(outcome, Ref)
        first = 100.0 + sum(sizes[:rank])
        row = [first + i for i in range(sizes[rank])]
        assert gang.floats(outcome) == row + [it + 6 for it in row]
        gang.ranks[rank].refs.release("", [outcome.id])
    is_as_before(gang, refs)


def test_sizes_of_a_scatter_that_do_not_fit_a_tensor_are_refused_where_it_is(gang: LocalGang) -> None:
    refs = inputs(gang, scatter)
    for sizes, odd, expected, got in (
        ((3, 3, 4), 2, "3 for this rank, the tensor's size along dim 0", "4: [3, 3, 4]"),
        ((2, 3, 3), 0, "a sum of 9, the tensor's size along dim 0", "8: [2, 3, 3]"),
    ):
        asked = on(refs, Scatter("", 0, 0, (3, 3, 3)))
        asked[odd] = replace(asked[odd], sizes=sizes)
        failures = [failure(it) for it in gang.run(scatter, asked)]
        assert [it.code for it in failures] == [ErrorCode.INVALID_ARGUMENT] * SIZE
        assert failures[odd].message.startswith("sizes do not fit the tensor")
        assert (failures[odd].expected, failures[odd].got) == (expected, got)
        assert {detail.rank for it in failures for detail in it.ranks} == {odd}
    is_as_before(gang, refs)


def test_a_whole_that_cannot_be_divided_equally_is_refused_at_its_source(gang: LocalGang) -> None:
    refs = [gang.arange_on(rank, 100 * rank, (4, 1)) for rank in range(SIZE)]
    refused, *missed = gang.run(scatter, on(refs, Scatter("", 0, 0)))
    error = failure(refused)
    assert (error.code, error.phase, error.indefinite) == (ErrorCode.INVALID_ARGUMENT, Phase.CHECK, False)
    assert "equal parts do not fit the tensor" in error.message
    assert (error.expected, error.got) == ("a multiple of 3, one part for each member, along dim 0", "4")
    assert [failure(it).code for it in missed] == [ErrorCode.INVALID_ARGUMENT] * 2
    assert [[detail.rank for detail in failure(it).ranks] for it in missed] == [[0], [0]]
    is_as_before(gang, refs)


def test_reduce_scatter_gives_every_member_its_part(gang: LocalGang) -> None:
    refs = [gang.arange_on(rank, 100 * rank, (2, 6)) for rank in range(SIZE)]
    for sizes, parts in (((), (2, 2, 2)), ((1, 0, 5), (1, 0, 5))):
        outcomes = gang.run(reduce_scatter, on(refs, ReduceScatter("", ReduceOp.MAX, -1, sizes)))
        assert [shape(it) for it in outcomes] == [(2, part) for part in parts]
        for rank, outcome in enumerate(outcomes):
            assert isinstance(outcome, Ref)
            first = 200.0 + sum(parts[:rank])
            row = [first + i for i in range(parts[rank])]
            assert gang.floats(outcome) == row + [it + 6 for it in row]
            gang.ranks[rank].refs.release("", [outcome.id])
    is_as_before(gang, refs)


@pytest.mark.parametrize(
    ("sizes", "misfit", "expected", "got"),
    [
        (
            (),
            "equal parts do not fit the tensor",
            "a multiple of 3, one part for each member, along dim 1",
            "8",
        ),
        ((4, 4), "sizes do not fit the group", "3 sizes, one for each member", "2: [4, 4]"),
        ((2, 2, 2, 2), "sizes do not fit the group", "3 sizes, one for each member", "4: [2, 2, 2, 2]"),
        ((9, -1, 0), "sizes do not fit the group", "0 or more for each member", "[9, -1, 0]"),
        (
            (3, 3, 3),
            "sizes do not fit the tensor",
            "a sum of 8, the tensor's size along dim 1",
            "9: [3, 3, 3]",
        ),
    ],
)
def test_sizes_that_are_not_of_parts_of_the_tensor_are_refused_by_every_rank(
    gang: LocalGang, sizes: tuple[int, ...], misfit: str, expected: str, got: str
) -> None:
    refs = [gang.arange_on(rank, 100 * rank, (2, 8)) for rank in range(SIZE)]
    for outcome in gang.run(reduce_scatter, on(refs, ReduceScatter("", ReduceOp.SUM, -1, sizes))):
        error = failure(outcome)
        assert (error.code, error.phase) == (ErrorCode.INVALID_ARGUMENT, Phase.CHECK)
        assert misfit in error.message
        assert (error.expected, error.got) == (expected, got)
    is_as_before(gang, refs)


@pytest.mark.parametrize("operation", [gather, all_gather], ids=by_name)
def test_tensors_of_different_sizes_are_put_together(gang: LocalGang, operation: Operation[Any]) -> None:
    sizes = (2, 0, 1)
    refs = [gang.arange_on(rank, 100 * rank, (2, size)) for rank, size in enumerate(sizes)]
    args: Any = Gather("", 1, -1, sizes) if operation is gather else AllGather("", -1, sizes)
    outcomes = gang.run(operation, on(refs, args))
    received = [it for it in outcomes if isinstance(it, Ref)]
    assert [it.rank for it in received] == ([1] if operation is gather else [0, 1, 2])
    for it in received:
        assert it.spec.shape == (2, 3)
        assert gang.floats(it) == [0.0, 1.0, 200.0, 2.0, 3.0, 201.0]
        gang.ranks[it.rank].refs.release("", [it.id])
    is_as_before(gang, refs)


@pytest.mark.parametrize("operation", [gather, all_gather], ids=by_name)
def test_a_tensor_that_is_not_of_its_size_is_refused_at_its_own_rank(
    gang: LocalGang, operation: Operation[Any]
) -> None:
    refs = [gang.arange_on(rank, 100 * rank, (size, 2)) for rank, size in enumerate((2, 3, 1))]
    args: Any = Gather("", 0, 0, (2, 2, 1)) if operation is gather else AllGather("", 0, (2, 2, 1))
    outcomes = gang.run(operation, on(refs, args))
    assert [failure(it).code for it in outcomes] == [ErrorCode.INVALID_ARGUMENT] * 3
    assert [[detail.rank for detail in failure(it).ranks] for it in outcomes] == [[1], [], [1]]
    error = failure(outcomes[1])
    assert "sizes do not fit the tensor" in error.message
    assert error.expected == "3 for this rank, the tensor's size along dim 0"
    assert error.got == "2: [2, 2, 1]"
    is_as_before(gang, refs)


@pytest.mark.parametrize("operation", [gather, all_gather], ids=by_name)
def test_members_that_expect_other_sizes_of_each_other_are_told_both_sides(
    gang: LocalGang, operation: Operation[Any]
) -> None:
    refs = [gang.arange_on(rank, 100 * rank, (2, 2)) for rank in range(SIZE)]
    args: Any = Gather("", 0, 0) if operation is gather else AllGather("", 0)
    asked = [
        replace(it, sizes=sizes)
        for it, sizes in zip(on(refs, args), [(2, 2, 2), (2, 2, 2), (9, 2, 2)], strict=True)
    ]
    failures = [failure(it) for it in gang.run(operation, asked)]
    assert {it.code for it in failures} == {ErrorCode.MISMATCH}
    assert all("shape=[*, 2]" in it.expected for it in failures)
    assert "sizes=[2, 2, 2]" in failures[0].expected
    assert "sizes=[9, 2, 2]" in failures[0].got
    is_as_before(gang, refs)


Sizes = tuple[int, ...]
EXCHANGED: list[Sizes] = [(1, 2, 0), (0, 0, 4), (3, 1, 1)]
"""What each member sends each, along the second dimension."""


def exchanging(gang: LocalGang) -> list[Ref]:
    return [gang.arange_on(rank, 100 * rank, (2, sum(row))) for rank, row in enumerate(EXCHANGED)]


def column(member: int) -> Sizes:
    """What a member gets of each."""
    return tuple(row[member] for row in EXCHANGED)


def test_all_to_all_gives_every_member_its_parts_of_all_tensors(gang: LocalGang) -> None:
    refs = exchanging(gang)
    args = [AllToAll(ref.id, -1, EXCHANGED[rank], column(rank)) for rank, ref in enumerate(refs)]
    outcomes = gang.run(all_to_all, args)
    assert [shape(it) for it in outcomes] == [(2, 4), (2, 3), (2, 5)]
    rows = [gang.floats(it) for it in outcomes if isinstance(it, Ref)]
    assert rows[0] == [0, 200, 201, 202, 3, 205, 206, 207]
    assert rows[1] == [1, 2, 203, 4, 5, 208]
    assert rows[2] == [100, 101, 102, 103, 204, 104, 105, 106, 107, 209]
    for rank, outcome in enumerate(outcomes):
        assert isinstance(outcome, Ref)
        gang.ranks[rank].refs.release("", [outcome.id])
    is_as_before(gang, refs)


@pytest.mark.parametrize("odd", range(SIZE))
def test_members_that_send_other_sizes_than_expected_are_all_told_the_same(gang: LocalGang, odd: int) -> None:
    refs = exchanging(gang)
    wrong = list(column(odd))
    source = (odd + 1) % SIZE
    wrong[source] += 2
    args = [
        AllToAll(ref.id, 1, EXCHANGED[rank], tuple(wrong) if rank == odd else column(rank))
        for rank, ref in enumerate(refs)
    ]
    failures = [failure(it) for it in gang.run(all_to_all, args)]
    assert [(it.code, it.phase, it.indefinite) for it in failures] == [
        (ErrorCode.MISMATCH, Phase.ADMISSION, False)
    ] * SIZE
    said = EXCHANGED[source][odd]
    assert {it.expected for it in failures} == {f"rank {odd} expects {said + 2} from rank {source}"}
    assert {it.got for it in failures} == {f"rank {source} sends {said} to rank {odd}"}
    assert all(f"do not fit each other: ranks {source} and {odd}" in it.message for it in failures)
    (states,) = {tuple(detail.state for detail in it.ranks) for it in failures}
    assert [state is RankState.DISAGREES for state in states] == [it in (source, odd) for it in range(SIZE)]
    assert f"output_sizes={wrong}" in failures[0].ranks[odd].detail
    is_as_before(gang, refs)


def test_a_member_that_gives_no_sizes_disagrees_with_those_that_do(gang: LocalGang) -> None:
    refs = [gang.arange_on(rank, 100 * rank, (3, 1)) for rank in range(SIZE)]
    given = AllToAll("", 0, (1, 1, 1), (1, 1, 1))
    asked = [*on(refs[:2], given), AllToAll(refs[2].id, 0)]
    failures = [failure(it) for it in gang.run(all_to_all, asked)]
    assert {it.code for it in failures} == {ErrorCode.MISMATCH}
    assert "shape=[*, 1] dim=0 sizes=given" in failures[0].expected
    assert "shape=[3, 1] dim=0" in failures[0].got
    is_as_before(gang, refs)


@pytest.mark.parametrize(
    ("sent", "received", "misfit", "expected", "got"),
    [
        (
            (),
            (),
            "equal parts do not fit the tensor",
            "a multiple of 3, one part for each member, along dim 0",
            "4",
        ),
        ((4, 0), (4, 0, 0), "input_sizes do not fit the group", "3 sizes, one for each member", "2: [4, 0]"),
        ((1, 1, 1), (1, 1, 1), "input_sizes do not fit the tensor", "a sum of 4", "3: [1, 1, 1]"),
        ((2, 1, 1), (1, 1), "output_sizes do not fit the group", "3 sizes, one for each member", "2: [1, 1]"),
        (
            (2, 1, 1),
            (2, -1, 1),
            "output_sizes do not fit the group",
            "0 or more for each member",
            "[2, -1, 1]",
        ),
        ((2, 1, 1), (), "output_sizes is missing", "both, or neither for equal parts", "input_sizes alone"),
        ((), (2, 1, 1), "output_sizes is missing", "both, or neither for equal parts", "output_sizes alone"),
    ],
)
def test_sizes_that_cannot_be_are_refused_before_anyone_is_asked(
    gang: LocalGang, sent: Sizes, received: Sizes, misfit: str, expected: str, got: str
) -> None:
    refs = [gang.arange_on(rank, 100 * rank, (4, 1)) for rank in range(SIZE)]
    for outcome in gang.run(all_to_all, on(refs, AllToAll("", 0, sent, received))):
        error = failure(outcome)
        assert (error.code, error.phase) == (ErrorCode.INVALID_ARGUMENT, Phase.CHECK)
        assert misfit in error.message
        assert error.expected.startswith(expected)
        assert error.got == got
    is_as_before(gang, refs)


def test_what_a_member_sends_itself_it_gets(gang: LocalGang) -> None:
    refs = [gang.arange_on(rank, 100 * rank, (3, 1)) for rank in range(SIZE)]
    args = [AllToAll(refs[0].id, 0, (1, 1, 1), (2, 1, 0)), None, None]
    (refused,) = gang.run(all_to_all, args)
    error = failure(refused)
    assert (error.code, error.phase) == (ErrorCode.INVALID_ARGUMENT, Phase.CHECK)
    assert "output_sizes do not fit input_sizes" in error.message
    assert error.got == "2: [2, 1, 0]"
    is_as_before(gang, refs)


def test_more_room_than_there_is_is_refused_before_anyone_is_asked() -> None:
    gang = LocalGang(2, Limits(max_bytes=64))
    refs = [gang.arange_on(rank, 0, (2,)) for rank in range(2)]
    huge = 2**62
    outcomes = gang.run(all_to_all, on(refs, AllToAll("", 0, (2, 0), (2, huge))), timeout=SHORT_S)
    assert failure(outcomes[0]).code is ErrorCode.RESOURCE_EXHAUSTED
    outcomes = gang.run(all_gather, [AllGather(refs[0].id, 0, (2, huge)), None])
    assert failure(outcomes[0]).code is ErrorCode.RESOURCE_EXHAUSTED
