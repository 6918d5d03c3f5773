"""How several collectives are asked for as one."""

from __future__ import annotations

from typing import Any

import pytest
from tests.unit.client.declared import SCOPE, answer, asked, calls_of, of_members, ref, refs

from rankbridge import InvalidArgumentError, ProtocolError, at_site
from rankbridge._plan import operations as ops
from rankbridge._plan.procedures import finishing
from rankbridge.v1 import call_pb2, collective_service_pb2 as collective_pb, operation_service_pb2 as pb


def test_each_collective_is_its_own_request_without_a_call_in_one_that_has_it() -> None:
    with at_site("a.py:7"):
        call = ops.coalesce(
            SCOPE,
            [("all_reduce", ref(), {"op": "avg", "in_place": True}), ("gather", ref(number=1)), ("barrier",)],
            group="tp",
            timeout=2,
            operation_id="id",
        )
    request = asked(call, pb.CoalesceRequest)
    first, second, third = request.operations
    assert (first.all_reduce.ref_id, first.all_reduce.in_place) == ("2.0", True)
    assert first.all_reduce.op == collective_pb.REDUCE_OP_AVG
    assert second.gather.ref_id == "2.1"
    assert third.WhichOneof("kind") == "barrier"
    assert not any(getattr(each, each.WhichOneof("kind")).HasField("call") for each in request.operations)
    assert request.call == call_pb2.Call(
        group="tp", timeout_ms=2000, session_id="theirs", operation_id="id", site="a.py:7"
    )


def test_every_member_gets_its_own_refs_and_its_own_share_of_the_options() -> None:
    rows = [[1, 1, 0, 0], [0, 2, 0, 0], [0, 0, 2, 0], [2, 0, 0, 0]]
    given = [("all_to_all", refs(), {"sizes": rows}), ("barrier", None), ("all_reduce", refs(1))]
    requests = of_members("coalesce", given, pb.CoalesceRequest)
    for member, request in enumerate(requests):
        exchange, _, reduction = request.operations
        assert exchange.all_to_all.ref_id == f"{member}.0"
        assert list(exchange.all_to_all.input_sizes) == rows[member]
        assert list(exchange.all_to_all.output_sizes) == [row[member] for row in rows]
        assert reduction.all_reduce.ref_id == f"{member}.1"
    assert len({request.call.operation_id for request in requests}) == 1


def test_barriers_alone_are_of_all_members() -> None:
    requests = of_members("coalesce", [("barrier",), ("barrier",)], pb.CoalesceRequest)
    assert [len(request.operations) for request in requests] == [2] * 4
    assert {request.call.session_id for request in requests} == {"gang"}


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ([], "nothing to coalesce"),
        (None, "nothing to coalesce"),
        ("barrier", "nothing to coalesce"),
        ([("all_reduce", refs(), "sum")], "not a collective"),
        ([()], "not a collective"),
        ([("all_redcue", refs())], "cannot be coalesced"),
        ([("send", refs())], "cannot be coalesced"),
        ([("broadcast_object", 1)], "cannot be coalesced"),
        ([("coalesce", [])], "cannot be coalesced"),
        ([("all_reduce", refs(), {"timeout": 1})], "options are of all"),
        ([("all_reduce", refs(), {"group": "tp"})], "options are of all"),
        ([("all_reduce", refs(), {"operation_id": "x"})], "options are of all"),
        ([("all_reduce", refs()), ("all_reduce", refs()[:3])], "in group order"),
        ([("all_reduce", None)], "in group order"),
        ([("all_reduce", refs()[::-1])], "in group order"),
        ([("all_reduce", refs(), {"op": "mean"})], "reduce op"),
        ([("all_gather", refs(), {"layout": "heap"})], "no such gather layout"),
        ([("all_reduce", refs()), ("all_reduce", refs(1, "other"))], "several sessions"),
    ],
)
def test_what_cannot_be_coalesced_is_refused_before_any_rank_is_asked(given: Any, message: str) -> None:
    with pytest.raises(InvalidArgumentError, match=message) as caught:
        calls_of("coalesce", given)
    assert not caught.value.indefinite


def test_refs_of_a_group_that_is_not_known_here_are_as_many_for_each() -> None:
    given = [("all_reduce", refs()[1:3]), ("all_gather", refs())]
    with pytest.raises(InvalidArgumentError, match="for each collective") as caught:
        calls_of("coalesce", given, group="tp")
    assert caught.value.got == "[2, 4]"


def test_an_unknown_option_is_an_error_of_the_program() -> None:
    with pytest.raises(TypeError, match="sizs"):
        calls_of("coalesce", [("all_gather", refs(), {"sizs": [1]})])


def test_the_results_are_as_many_as_the_collectives() -> None:
    call = ops.coalesce(SCOPE, [("all_gather", ref(), {"layout": "list"}), ("barrier",)])
    assert answer(call, pb.CoalesceResponse, [refs(), None]) == [refs(), None]
    for wrong in ([None], [None] * 3, (None, None), None):
        with pytest.raises(ProtocolError, match="one of each"):
            answer(call, pb.CoalesceResponse, wrong)


def test_results_by_member_become_results_by_collective_as_each_gives_alone() -> None:
    finish = finishing("coalesce", [("all_reduce", refs()), ("barrier",), ("reduce", refs())])
    by_member = [[ref(rank), None, ref(rank, 1) if rank == 0 else None] for rank in range(4)]
    assert finish(by_member) == [refs(), None, [ref(0, 1), None, None, None]]
