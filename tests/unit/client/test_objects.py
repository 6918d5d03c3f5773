"""How collectives on values are asked for, and how their answers are read."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.unit.client.declared import SCOPE, answer, asked, calls_of, of_members, ref, refs
from tests.unit.client.fronts import compat

import rankbridge
from rankbridge import InvalidArgumentError, from_value
from rankbridge._plan import operations as ops
from rankbridge.v1 import collective_service_pb2 as collective_pb, object_service_pb2 as pb


def test_of_a_broadcast_the_source_alone_gets_the_value_and_all_one_id() -> None:
    value = {"k": [1, 2.5, None, (True, b"x")]}
    requests = of_members("broadcast_object", value, pb.BroadcastObjectRequest, src_rank_in_group=2)
    assert [from_value(request.value) for request in requests] == [None, None, value, None]
    assert {request.src_rank_in_group for request in requests} == {2}
    assert {request.call.session_id for request in requests} == {"gang"}
    (operation_id,) = {request.call.operation_id for request in requests}
    assert operation_id


def test_of_a_scatter_the_source_gets_one_value_for_each_and_the_others_nothing() -> None:
    requests = of_members("scatter_object", (0, "one", None, [3]), pb.ScatterObjectRequest)
    assert from_value(requests[0].values) == [0, "one", None, [3]]
    assert [request.HasField("values") for request in requests] == [True, False, False, False]


@pytest.mark.parametrize(
    ("operation", "request_type"),
    [("gather_object", pb.GatherObjectRequest), ("all_gather_object", pb.AllGatherObjectRequest)],
)
def test_of_a_gather_each_member_gets_its_own_value(operation: str, request_type: Any) -> None:
    requests = of_members(operation, [0, "one", None, [3]], request_type)
    assert [from_value(request.value) for request in requests] == [0, "one", None, [3]]


def test_numbers_stay_what_they_are() -> None:
    requests = of_members("all_reduce_value", [1, 2**80, -3, 0], pb.AllReduceValueRequest, op="max")
    assert [from_value(request.value) for request in requests] == [1, 2**80, -3, 0]
    assert {request.op for request in requests} == {collective_pb.REDUCE_OP_MAX}
    numbers: list[Any] = [True, 1, 0.1, np.float64(0.1), np.int8(1), np.bool_(True)]
    kinds = [
        asked(ops.OPERATIONS["all_reduce_value"](SCOPE, value), pb.AllReduceValueRequest).value.WhichOneof(
            "kind"
        )
        for value in numbers
    ]
    assert kinds == ["bool", "int", "float", "float", "int", "bool"]


def test_a_tensor_dict_is_sent_in_the_session_of_its_refs_on_every_member() -> None:
    tensors = {"t": ref(1), "in": {"l": [ref(1, 7)]}, 3: "plain"}
    requests = of_members(
        "broadcast_tensor_dict", tensors, pb.BroadcastTensorDictRequest, src_rank_in_group=1
    )
    assert from_value(requests[1].dict) == tensors
    assert [request.HasField("dict") for request in requests] == [False, True, False, False]
    assert {request.call.session_id for request in requests} == {"theirs"}
    plain = of_members("broadcast_tensor_dict", {"n": 1}, pb.BroadcastTensorDictRequest)
    assert {request.call.session_id for request in plain} == {"gang"}


@pytest.mark.parametrize(
    ("operation", "given", "options", "message"),
    [
        ("scatter_object", "four", {}, "takes a list"),
        ("scatter_object", [1, 2, 3], {}, "one value for each rank"),
        ("gather_object", {0: 1}, {}, "takes a list"),
        ("all_gather_object", [1, 2, 3], {}, "one value for each rank"),
        ("all_reduce_value", [1, 2, "3", 4], {}, "takes numbers"),
        ("all_reduce_value", [1, 2, None, 4], {}, "takes numbers"),
        ("all_reduce_value", [1, 2, 3, 4], {"op": "mean"}, "no such reduce op"),
        ("broadcast_object", 1, {"src_rank_in_group": 4}, "not in the group"),
        ("broadcast_object", 1, {"src_rank_in_group": -1}, "not in the group"),
        ("broadcast_object", {1, 2}, {}, "cannot be a value"),
        ("broadcast_tensor_dict", [1], {}, "takes a map"),
        ("broadcast_tensor_dict", {"t": ref(1)}, {}, "not the source's"),
        ("broadcast_tensor_dict", {"t": ref(0), "u": ref(1)}, {}, "one rank and one session"),
        ("broadcast_tensor_dict", {"t": ref(0), "u": ref(0, session_id="")}, {}, "one rank and one session"),
    ],
)
def test_what_cannot_be_is_refused_before_any_rank_is_asked(
    operation: str, given: Any, options: dict[str, Any], message: str
) -> None:
    with pytest.raises(InvalidArgumentError, match=message) as caught:
        calls_of(operation, given, **options)
    assert not caught.value.indefinite


def test_a_tensor_dict_that_contains_itself_is_refused() -> None:
    endless: dict[str, Any] = {}
    endless["in"] = [endless, endless]
    with pytest.raises(InvalidArgumentError, match="nested too deep"):
        calls_of("broadcast_tensor_dict", endless)


def test_values_come_back_as_they_are() -> None:
    for value in ({"a": [1, (2,)]}, None, 2**70, "text"):
        call = ops.OPERATIONS["broadcast_object"](SCOPE)
        assert answer(call, pb.BroadcastObjectResponse, value) == value
    given = answer(ops.OPERATIONS["all_gather_object"](SCOPE, 1), pb.AllGatherObjectResponse, [1, None])
    assert given == [1, None]
    tensors = {"t": ref(), "n": 1}
    assert (
        answer(ops.OPERATIONS["broadcast_tensor_dict"](SCOPE), pb.BroadcastTensorDictResponse, tensors)
        == tensors
    )


def test_a_gang_refuses_a_list_that_is_none_before_any_rank_is_asked(gang: Any, sidecars: Any) -> None:
    broadcast_objects = compat(gang, "optimus").broadcast_objects
    for call in (gang.broadcast_object_list, broadcast_objects, gang[0].broadcast_object_list):
        with pytest.raises(InvalidArgumentError, match="takes a list"):
            call("abc")
    with pytest.raises(InvalidArgumentError, match="a flag is a bool"):
        compat(gang, "olmo").synchronize_flag(1)
    assert all(not sidecar.requests.get("BroadcastObject") for sidecar in sidecars.sidecars)


def test_the_group_of_metadata_must_have_the_same_members(gang: Any) -> None:
    again = rankbridge.Group(name="meta", ranks=(3, 2, 1, 0))
    other = rankbridge.Group(name="meta", ranks=(0, 1))
    with pytest.raises(InvalidArgumentError, match="other members") as caught:
        gang.broadcast_tensor_dict({"n": 1}, metadata_group=other)
    assert caught.value.expected == "ranks [0, 1, 2, 3]"
    with pytest.raises(InvalidArgumentError, match="takes a map"):
        gang.broadcast_tensor_dict([], metadata_group=again)


def test_refs_in_values_are_found_in_every_container() -> None:
    value = {"a": refs()[0], "b": [(refs()[1],), {"c": refs()[2]}], "d": 1}
    assert {found.rank for found in ops.refs_in(value)} == {0, 1, 2}
    assert list(ops.refs_in("text")) == []
