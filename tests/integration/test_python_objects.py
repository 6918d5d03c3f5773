"""Values and maps of tensors through the Python client, on real ranks."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from tests.support.gangs import RunningGang
from tests.unit.client.fronts import compat, connected

import rankbridge
from rankbridge._plan.values import MAX_DEPTH


@pytest.fixture(params=["sync", "async"])
def front(request: pytest.FixtureRequest) -> str:
    """Name of each front in turn."""
    name: str = request.param
    return name


@pytest.fixture(params=["fake4", "gloo4"])
def running(request: pytest.FixtureRequest) -> RunningGang:
    """A gang of four real ranks, on each backend in turn."""
    gang: RunningGang = request.getfixturevalue(request.param)
    return gang


@pytest.fixture
def gang(front: str, running: RunningGang) -> Iterator[Any]:
    """The gang, connected to by each front in turn."""
    with connected(front, running.description, timeout=60) as gang:
        yield gang


@pytest.fixture
def refs(gang: Any) -> Any:
    """Rank r holds [r, r + 10]."""
    return gang.put([np.array([rank, rank + 10], np.float32) for rank in range(4)])


VALUE = {
    "none": None,
    "numbers": [True, False, 0, -1, 2**63, -(2**200), 0.1, float("inf"), -0.0],
    ("any", 1): ("kind", {2.5: b"of\\x00key"}),
    None: [[], (), {}, "", b""],
}


def test_every_member_gets_the_sources_value(gang: Any) -> None:
    for source in (0, 3):
        assert gang.broadcast_object(VALUE, src_rank_in_group=source) == [VALUE] * 4
    assert gang.broadcast_object(None) == [None] * 4
    assert gang.broadcast_object_list((1, [2], None), src_rank_in_group=1) == [[1, [2], None]] * 4
    assert compat(gang, "optimus").broadcast_objects([], src_rank_in_group=1) == [[]] * 4
    assert compat(gang, "olmo").synchronize_value(16777217.1, src_rank_in_group=2) == [16777217.1] * 4
    assert compat(gang, "olmo").synchronize_flag(True, src_rank_in_group=3) == [True] * 4


def test_tensors_by_value_and_refs_as_handles_are_values_too(gang: Any, refs: Any) -> None:
    tensor = np.arange(6, dtype=np.int16).reshape(2, 3)
    for got in gang.broadcast_object([tensor, refs[1]], src_rank_in_group=1):
        np.testing.assert_array_equal(got[0], tensor)
        assert got[0].dtype == np.int16
        assert got[1] == refs[1]


def test_every_member_gets_its_own_of_the_sources_values(gang: Any) -> None:
    values = ["zero", None, {"two": 2}, [3]]
    assert gang.scatter_object(values, src_rank_in_group=2) == values


def test_one_or_all_get_all_members_values_in_group_order(gang: Any) -> None:
    values = ["x" * 100_000, None, 2, {"three": 3}]
    assert gang.gather_object(values, dst_rank_in_group=1) == [None, values, None, None]
    assert gang.all_gather_object(values) == [values] * 4
    assert compat(gang, "optimus").all_gather_objects(values) == [values] * 4


def test_numbers_are_reduced_without_loss(gang: Any) -> None:
    assert gang.all_reduce_value([2**62, 2**62, 1, -2]) == [2**63 - 1] * 4
    assert gang.all_reduce_value([1, 2, 3, 5], op="avg") == [2.75] * 4
    assert gang.all_reduce_value([16777217.0, 0.0, 0.0, 0.1]) == [16777217.1] * 4
    assert gang.all_reduce_value([1.5, -2.0, 3.0, 0.0], op="min") == [-2.0] * 4
    for values, kind in (([True, False, True, False], bool), ([1, 0, 1, 0], int)):
        (got, *others) = gang.all_reduce_value(values, op="max")
        assert (got, type(got), others) == (1, kind, [got] * 3)


def test_numbers_of_several_kinds_are_a_mismatch(gang: Any) -> None:
    with pytest.raises(rankbridge.MismatchError) as caught:
        gang.all_reduce_value([1, 1.0, True, 2])
    assert not caught.value.indefinite
    with pytest.raises(rankbridge.UnsupportedDtypeError):
        gang.all_reduce_value([0.5] * 4, op="bor")
    gang.barrier()


def test_every_member_gets_the_sources_map_with_tensors_of_its_own(gang: Any, refs: Any) -> None:
    empty, scalar = gang[2].create("bfloat16", (0, 3)), gang[2].put(np.float64(0.1))
    sent = {"a": refs[2], "in": {"empty": empty, "list": [scalar, refs[2]]}, 3: "plain", "none": None}
    got = gang.broadcast_tensor_dict(sent, src_rank_in_group=2, metadata_group="world")
    assert got[2] == sent
    for rank, tensors in enumerate(got):
        found = [tensors["a"], tensors["in"]["empty"], *tensors["in"]["list"]]
        assert {ref.rank for ref in found} == {rank}
        assert {ref.session_id for ref in found} == {gang.session_id}
        assert (tensors[3], tensors["none"], list(tensors)) == ("plain", None, list(sent))
        assert (found[1].dtype, found[1].shape) == ("bfloat16", (0, 3))
        np.testing.assert_array_equal(gang.get(found[0]), [2, 12])
        assert gang.get(found[2]) == 0.1
    assert gang.broadcast_tensor_dict({}) == [{}] * 4


def test_a_group_has_its_own_order_of_members(gang: Any) -> None:
    group = gang.new_group(f"odd-{uuid.uuid4().hex}", [3, 1])
    try:
        assert gang.all_gather_object(["three", "one"], group=group) == [["three", "one"]] * 2
        assert gang.scatter_object(["three", "one"], src_rank_in_group=1, group=group.name) == [
            "three",
            "one",
        ]
        ref = gang[3].put(np.ones(2))
        got = gang.broadcast_tensor_dict({"t": ref}, group=group)
        assert [tensors["t"].rank for tensors in got] == [3, 1]
        with pytest.raises(rankbridge.RankOutOfRangeError):
            gang.broadcast_object(1, src_rank_in_group=2, group=group)
    finally:
        gang.destroy_group(group)


def test_one_rank_after_another_takes_part_by_itself(gang: Any) -> None:
    begun = [
        rank.start("broadcast_object", *(["value"] if rank.rank == 1 else []), src_rank_in_group=1)
        for rank in gang
    ]
    assert [it.result() for it in begun] == ["value"] * 4
    begun = [rank.start("all_reduce_value", rank.rank, op="sum") for rank in gang]
    assert [it.result() for it in begun] == [6] * 4


def test_what_was_submitted_gives_what_the_direct_call_gives(gang: Any, refs: Any) -> None:
    assert gang.submit("broadcast_object", None, src_rank_in_group=1).result() == [None] * 4
    values = [0, "one", None, [3]]
    assert gang.submit("scatter_object", values).result() == values
    assert gang.submit("gather_object", values, dst_rank_in_group=3).result() == [None, None, None, values]
    assert gang.submit("all_reduce_value", [1, 2, 3, 4], op="product").result() == [24] * 4
    submitted = gang.submit("broadcast_tensor_dict", {"t": refs[0]})
    assert [tensors["t"].rank for tensors in submitted.result()] == [0, 1, 2, 3]
    statuses = gang.submit("all_gather_object", values)
    assert statuses.result() == [values] * 4
    assert [status.value for status in statuses.poll()] == [values] * 4


def test_values_as_deep_as_they_may_be_pass_every_way(gang: Any) -> None:
    deep: Any = np.zeros(1, np.int8)
    for _ in range(MAX_DEPTH):
        deep = {"in": deep}
    submitted = gang.submit("all_gather_object", [deep] * 4)
    assert str(submitted.result()) == str([[deep] * 4] * 4)
    assert str([status.value for status in submitted.poll()]) == str([[deep] * 4] * 4)
    assert str(gang.broadcast_tensor_dict(deep)) == str([deep] * 4)
    with pytest.raises(rankbridge.InvalidArgumentError, match="nested too deep"):
        gang.broadcast_object([deep])


def test_a_value_that_one_member_does_not_bring_is_missed_and_the_group_goes_on(gang: Any) -> None:
    operation_id = uuid.uuid4().hex
    begun = [
        rank.start("all_gather_object", 1, timeout=1, operation_id=operation_id) for rank in list(gang)[:3]
    ]
    for it in begun:
        error = it.exception()
        assert isinstance(error, rankbridge.PeerMissingError)
        assert 3 in [detail.rank for detail in error.ranks if detail.state == "missing"]
    gang.barrier()
