"""How the calls of all members become one, and its response their outcomes. No rank is asked but where sidecars are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from tests.unit.client import declared
from tests.unit.client.sidecars import SidecarGang

import rankbridge
from rankbridge._plan import operations as ops
from rankbridge._plan.gang_calls import MAX_PART, joined
from rankbridge._plan.procedures import member_calls
from rankbridge.v1 import error_pb2, gang_service_pb2, operation_service_pb2, value_pb2

NONE = operation_service_pb2.OperationResult(value=value_pb2.Value(none=value_pb2.NoneValue()))
REFUSED = operation_service_pb2.OperationResult(
    error=error_pb2.Error(code=error_pb2.ERROR_CODE_UNKNOWN_REF, message="no ref", rank=2)
)


def requested(operation: str, given: Any = None, **options: Any) -> gang_service_pb2.CallRequest | None:
    gang, build = declared.gang(), ops.find_operation(operation)
    calls = ops_calls(gang, operation, build, given, options)
    gang_call = joined(calls)
    return gang_service_pb2.CallRequest.FromString(gang_call.call.body) if gang_call else None


def ops_calls(gang: Any, operation: str, build: Any, given: Any, options: dict[str, Any]) -> Any:
    options = {"calls": "gang", **options}
    return member_calls(gang, operation, build, given, range(4), options)


def response(results: Sequence[operation_service_pb2.OperationResult | None]) -> Any:
    members = [
        gang_service_pb2.MemberOutcome(rank=rank, result=result) for rank, result in enumerate(results)
    ]
    outcomes = gang_service_pb2.MemberOutcomes(operation_id="id", members=members)
    return gang_service_pb2.CallResponse(outcomes=outcomes)


def test_what_is_alike_goes_once() -> None:
    request = requested("barrier", operation_id="id", group="world", timeout=3)
    assert request is not None
    assert [it.WhichOneof("kind") for it in request.operations] == ["barrier"]
    assert not request.operations[0].barrier.HasField("call")
    call = request.call
    assert (call.operation_id, call.group, call.timeout_ms, call.session_id) == ("id", "world", 3000, "gang")


def test_what_differs_goes_in_group_order_in_the_session_of_the_refs() -> None:
    request = requested("all_reduce", declared.refs(), op="max")
    assert request is not None
    assert [it.all_reduce.ref_id for it in request.operations] == [f"{rank}.0" for rank in range(4)]
    assert request.call.session_id == "theirs"


@pytest.mark.parametrize("source", range(4))
def test_parts_that_are_alike_have_their_places_among_others(source: int) -> None:
    request = requested("broadcast_object", 7, src_rank_in_group=source)
    assert request is not None
    assert [it.broadcast_object.value.int == 7 for it in request.operations] == [
        place == source for place in range(4)
    ]


def test_what_cannot_go_as_one_goes_to_each_rank() -> None:
    mixed = [*declared.refs()[:3], declared.ref(3, session_id="another")]
    assert requested("all_reduce", mixed) is None
    assert requested("broadcast_object", bytes(MAX_PART)) is None
    assert requested("barrier", calls="ranks") is None


def test_each_outcome_is_its_members() -> None:
    gang = declared.gang()
    gang_call = joined(ops_calls(gang, "barrier", ops.OPERATIONS["barrier"], None, {"operation_id": "id"}))
    assert gang_call is not None
    assert (gang_call.call.rank, gang_call.call.path) == (0, "/rankbridge.v1.GangService/Call")
    outcomes = gang_call.call.result(response([NONE, None, REFUSED, NONE]).SerializeToString())
    assert outcomes[1] is None
    results = [(it.rank, type(it.error)) for it in outcomes if it is not None]
    assert results == [(0, type(None)), (2, rankbridge.UnknownRefError), (3, type(None))]
    (kept,) = gang_call.kept(outcomes)
    assert (kept.rank, kept.path) == (1, "/rankbridge.v1.OperationService/Await")
    assert operation_service_pb2.AwaitRequest.FromString(kept.request).operation_id == "id"


def test_a_response_of_other_members_is_not_understood() -> None:
    gang_call = joined(ops_calls(declared.gang(), "barrier", ops.OPERATIONS["barrier"], None, {}))
    assert gang_call is not None
    with pytest.raises(rankbridge.ProtocolError):
        gang_call.call.result(response([NONE] * 3).SerializeToString())
    with pytest.raises(rankbridge.ProtocolError):
        gang_call.call.result(b"")


def test_one_rank_is_asked_and_what_it_kept_is_fetched(gang: Any, sidecars: SidecarGang) -> None:
    sidecars[0].answers["Call"] = lambda *_: response([NONE, NONE, None, NONE])
    sidecars[2].answers["Await"] = lambda *_: operation_service_pb2.AwaitResponse(value=NONE.value)
    gang.barrier(calls="gang")
    assert [len(it.requests.get("Call", ())) for it in sidecars.sidecars] == [1, 0, 0, 0]
    assert [len(it.requests.get("Await", ())) for it in sidecars.sidecars] == [0, 0, 1, 0]
    assert not any("Barrier" in it.requests for it in sidecars.sidecars)


def test_an_error_of_the_call_as_a_whole_is_every_members(gang: Any, sidecars: SidecarGang) -> None:
    error = sidecars[0].error("UNKNOWN_GROUP", "no such group")
    sidecars[0].answers["Call"] = lambda *_: gang_service_pb2.CallResponse(error=error)
    with pytest.raises(rankbridge.UnknownGroupError) as raised:
        gang.ping()
    assert isinstance(raised.value, rankbridge.GangError)
    assert [it.rank for it in raised.value.outcomes] == [0, 1, 2, 3]


def test_a_rank_that_cannot_be_reached_fails_the_call_at_every_member(
    gang: Any, sidecars: SidecarGang
) -> None:
    sidecars.servers[0].stop(None).wait(30)
    with pytest.raises(rankbridge.UnavailableError) as raised:
        gang.ping()
    assert isinstance(raised.value, rankbridge.GangError)
    assert len(raised.value.outcomes) == 4
