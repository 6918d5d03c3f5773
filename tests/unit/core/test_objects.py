"""Objects, numbers and tensor dicts among ranks of one process, on the fake backend."""

from __future__ import annotations

import math
from typing import Any

import pytest
from tests.support.local_gang import LocalGang

from rankbridge_server.core.coordinator import ReduceOp
from rankbridge_server.core.errors import BridgeError, ErrorCode, Failure, RankState
from rankbridge_server.core.limits import Limits
from rankbridge_server.core.operations.agreements import Barrier, barrier
from rankbridge_server.core.operations.objects import (
    AllGatherObject,
    BroadcastObject,
    GatherObject,
    ScatterObject,
    all_gather_object,
    broadcast_object,
    gather_object,
    scatter_object,
)
from rankbridge_server.core.operations.outcome import Packed, TensorDict
from rankbridge_server.core.operations.payloads import MAX_OBJECT_BYTES, MAX_SKELETON_BYTES
from rankbridge_server.core.operations.tensor_dicts import (
    BroadcastTensorDict,
    GivenDict,
    broadcast_tensor_dict,
)
from rankbridge_server.core.operations.values import MAX_BITS, AllReduceValue, all_reduce_value

SIZE = 3
DATA = [Packed(b"one"), Packed(b""), Packed(b"three" * 100)]


def failures(outcomes: list[Any]) -> list[Failure]:
    assert all(isinstance(outcome, BridgeError) for outcome in outcomes), outcomes
    return [outcome.failure for outcome in outcomes]


@pytest.mark.parametrize("src", range(SIZE))
@pytest.mark.parametrize("data", DATA)
def test_all_get_the_source_s_object_whatever_they_bring(gang: LocalGang, src: int, data: Packed) -> None:
    brought = [data if rank == src else [None, Packed(b"ignored"), None][rank] for rank in range(SIZE)]
    args = [BroadcastObject(it, src) for it in brought]
    assert gang.run(broadcast_object, args) == [data] * SIZE


@pytest.mark.parametrize("src", range(SIZE))
def test_each_gets_its_own_of_the_source_s_objects(gang: LocalGang, src: int) -> None:
    args = [ScatterObject(tuple(DATA) if rank == src else None, src) for rank in range(SIZE)]
    assert gang.run(scatter_object, args) == DATA


@pytest.mark.parametrize("dst", range(SIZE))
def test_the_destination_gets_all_objects(gang: LocalGang, dst: int) -> None:
    args = [GatherObject(data, dst) for data in DATA]
    assert gang.run(gather_object, args) == [DATA if rank == dst else None for rank in range(SIZE)]


@pytest.mark.parametrize("data", [DATA, [Packed(b"")] * SIZE])
def test_all_get_all_objects(gang: LocalGang, data: list[Packed]) -> None:
    assert gang.run(all_gather_object, [AllGatherObject(it) for it in data]) == [data] * SIZE


def test_objects_that_are_too_large_together_fail_alike_before_they_move(gang: LocalGang) -> None:
    third = Packed(bytes(MAX_OBJECT_BYTES // 3 + 1))
    outcomes = gang.run(all_gather_object, [AllGatherObject(third)] * SIZE)
    assert {(it.code, it.indefinite) for it in failures(outcomes)} == {(ErrorCode.RESOURCE_EXHAUSTED, False)}
    assert gang.run(barrier, [Barrier()] * SIZE) == [None] * SIZE


def test_a_source_without_an_object_is_refused(gang: LocalGang) -> None:
    outcomes = gang.run(broadcast_object, [BroadcastObject(None, 0), None, None])
    assert [it.code for it in failures(outcomes)] == [ErrorCode.INVALID_ARGUMENT]
    outcomes = gang.run(scatter_object, [ScatterObject(tuple(DATA[:2]), 0), None, None])
    assert [(it.code, it.got) for it in failures(outcomes)] == [(ErrorCode.INVALID_ARGUMENT, "2")]


NUMBERS: list[tuple[list[Any], dict[str, Any]]] = [
    (
        [6, 3, -5],
        {"sum": 4, "product": -90, "min": -5, "max": 6, "avg": 4 / 3, "band": 2, "bor": -1, "bxor": -2},
    ),
    ([2**70, 1, -(2**65)], {"sum": 2**70 + 1 - 2**65, "max": 2**70, "product": -(2**135)}),
    (
        [0.1, 0.2, 0.3],
        {"sum": 0.1 + 0.2 + 0.3, "product": 0.1 * 0.2 * 0.3, "min": 0.1, "avg": (0.1 + 0.2 + 0.3) / 3},
    ),
    ([1.0, -0.0, math.inf], {"max": math.inf, "min": -0.0, "sum": math.inf}),
    (
        [True, False, True],
        {"sum": True, "product": False, "min": False, "max": True, "band": False, "bor": True, "bxor": False},
    ),
]


@pytest.mark.parametrize(
    ("numbers", "op", "expected"),
    [(numbers, op, expected) for numbers, by_op in NUMBERS for op, expected in by_op.items()],
)
def test_numbers_are_reduced_and_stay_what_they_are(
    gang: LocalGang, numbers: list[Any], op: str, expected: Any
) -> None:
    args = [AllReduceValue(number, ReduceOp(op)) for number in numbers]
    outcomes = gang.run(all_reduce_value, args)
    assert outcomes == [expected] * SIZE
    assert [type(outcome) for outcome in outcomes] == [type(expected)] * SIZE


@pytest.mark.parametrize("op", [ReduceOp.MIN, ReduceOp.MAX, ReduceOp.SUM])
def test_what_is_not_a_number_stays_so(gang: LocalGang, op: ReduceOp) -> None:
    outcomes = gang.run(all_reduce_value, [AllReduceValue(it, op) for it in (1.0, math.nan, 2.0)])
    assert all(isinstance(outcome, float) and math.isnan(outcome) for outcome in outcomes)


@pytest.mark.parametrize(
    ("number", "op", "code"),
    [
        (1.5, ReduceOp.BAND, ErrorCode.UNSUPPORTED_DTYPE),
        (True, ReduceOp.AVG, ErrorCode.UNSUPPORTED_DTYPE),
        pytest.param(2**MAX_BITS, ReduceOp.SUM, ErrorCode.INVALID_ARGUMENT, id="too long"),
    ],
)
def test_reductions_that_cannot_be_are_refused(
    gang: LocalGang, number: Any, op: ReduceOp, code: ErrorCode
) -> None:
    outcomes = gang.run(all_reduce_value, [AllReduceValue(number, op)] * SIZE)
    assert {it.code for it in failures(outcomes)} == {code}


def test_an_average_that_no_float_can_be_is_told_alike(gang: LocalGang) -> None:
    outcomes = gang.run(all_reduce_value, [AllReduceValue(2**2000, ReduceOp.AVG)] * SIZE)
    assert {it.code for it in failures(outcomes)} == {ErrorCode.INVALID_ARGUMENT}


def test_an_int_and_a_float_are_a_mismatch(gang: LocalGang) -> None:
    outcomes = gang.run(all_reduce_value, [AllReduceValue(it, ReduceOp.SUM) for it in (1, 1.0, 1)])
    assert {it.code for it in failures(outcomes)} == {ErrorCode.MISMATCH}


def dict_args(gang: LocalGang, src: int, shapes: list[tuple[int, ...]]) -> list[BroadcastTensorDict]:
    refs = [gang.arange_on(src, 10 * number, shape) for number, shape in enumerate(shapes)]
    given = GivenDict(b"skeleton", tuple(ref.id for ref in refs))
    return [BroadcastTensorDict(given if rank == src else None, src) for rank in range(SIZE)]


@pytest.mark.parametrize("src", range(SIZE))
@pytest.mark.parametrize("shapes", [[], [(2, 1), (0, 3), ()]])
def test_all_get_tensors_of_their_own_for_the_source_s(
    gang: LocalGang, src: int, shapes: list[tuple[int, ...]]
) -> None:
    args = dict_args(gang, src, shapes)
    for rank, outcome in enumerate(gang.run(broadcast_tensor_dict, args)):
        assert isinstance(outcome, TensorDict)
        assert outcome.skeleton == b"skeleton"
        assert [(ref.rank, ref.spec.shape) for ref in outcome.refs] == [(rank, shape) for shape in shapes]
        assert [gang.floats(ref) for ref in outcome.refs] == [[0, 1], [], [20]][: len(shapes)]
    assert [sum(it.refs for it in rank.refs.usage()) for rank in gang.ranks] == [len(shapes)] * SIZE


def test_a_dict_that_one_has_no_room_for_changes_nothing_anywhere() -> None:
    gang = LocalGang(SIZE, Limits(max_bytes=64))
    args = dict_args(gang, 0, [(3,), (4,)])
    gang.full_on(2, 0, (10,))
    outcomes = failures(gang.run(broadcast_tensor_dict, args))
    assert {(it.code, it.indefinite) for it in outcomes} == {(ErrorCode.RESOURCE_EXHAUSTED, False)}
    assert [(detail.rank, detail.state) for detail in outcomes[0].ranks] == [(2, RankState.FAILED)]
    assert [sum(it.refs for it in rank.refs.usage()) for rank in gang.ranks] == [2, 0, 1]
    assert gang.run(barrier, [Barrier()] * SIZE) == [None] * SIZE


def test_a_dict_is_refused_where_it_cannot_be(gang: LocalGang) -> None:
    elsewhere = gang.full_on(1, 0)
    for given, code in [
        (None, ErrorCode.INVALID_ARGUMENT),
        (GivenDict(b"", (elsewhere.id,)), ErrorCode.UNKNOWN_REF),
        (GivenDict(bytes(MAX_SKELETON_BYTES + 1), ()), ErrorCode.RESOURCE_EXHAUSTED),
    ]:
        outcomes = gang.run(broadcast_tensor_dict, [BroadcastTensorDict(given, 0), None, None])
        assert [it.code for it in failures(outcomes)] == [code]
