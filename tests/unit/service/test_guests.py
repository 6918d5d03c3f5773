"""What a guest's ids become on the way in and out, by the descriptors of all messages."""

from __future__ import annotations

import re
from typing import Any

import pytest
from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.descriptor_pool import Default

from rankbridge.v1 import (
    call_pb2,
    collective_service_pb2,
    gang_service_pb2,
    operation_service_pb2,
    rank_service_pb2,
    ref_service_pb2,
)
from rankbridge_server.core.guests import home, home_of
from rankbridge_server.service import guests
from rankbridge_server.service.server import _PACKAGE

HOME = home("alice")


def fields_of_package() -> list[FieldDescriptor]:
    """Every text in every message that a rank takes or gives."""
    waiting = [
        message
        for name in _PACKAGE
        for method in Default().FindServiceByName(f"rankbridge.v1.{name}Service").methods
        for message in (method.input_type, method.output_type)
    ]
    seen: dict[str, Any] = {}
    while waiting:
        message = waiting.pop()
        if message.full_name not in seen:
            seen[message.full_name] = message
            waiting += [it.message_type for it in message.fields if it.message_type is not None]
    return [it for message in seen.values() for it in message.fields if it.type == it.TYPE_STRING]


def test_every_text_that_names_a_session_an_operation_or_a_queue_is_known() -> None:
    looks_like = {
        it.full_name
        for it in fields_of_package()
        if re.search("session|operation_id|queue|withdraw", it.name)
        or (it.name == "name" and "Queue" in it.full_name)
    }
    assert looks_like == {it.full_name for it in fields_of_package() if guests._is_id(it)}
    assert not [it.full_name for it in fields_of_package() if guests._is_id(it) and it.is_repeated]


@pytest.mark.parametrize("name", ["alice", "spiffe://example.org/ns/a/sa/b", "x" * 300, "~a/b", "ä"])
def test_a_home_is_one_guests_and_short(name: str) -> None:
    assert home_of(home(name) + "any/thing") == home(name)
    assert len(home(name)) < 64
    assert home(name) != home(name + "/")


@pytest.mark.parametrize("session", ["", "mine", "~bob/", "~bob/his", "/", "~", "~x"])
def test_the_owners_sessions_are_no_guests_unless_it_says_so(session: str) -> None:
    assert home_of(session) == ("~bob/" if session.startswith("~bob/") else "")


def test_a_call_without_a_session_has_the_guests_own() -> None:
    barrier = guests.enter(collective_service_pb2.BarrierRequest(), HOME)
    assert barrier.call == call_pb2.Call(session_id="~alice/")
    run = operation_service_pb2.RunRequest()
    run.operation.barrier.SetInParent()
    assert guests.enter(run, HOME).operation.barrier.call.session_id == "~alice/"


def test_operations_of_a_gang_call_get_no_call_of_their_own() -> None:
    request = gang_service_pb2.ExecuteRequest(number=1)
    request.call.operations.add().barrier.SetInParent()
    call = guests.enter(request, HOME).call
    assert not call.operations[0].barrier.HasField("call")
    assert call.call.operation_id.startswith("~alice/")
    assert call.call.session_id == "~alice/"


def test_who_names_anothers_home_names_one_of_its_own() -> None:
    request = guests.enter(ref_service_pb2.GetTensorRequest(session_id="~bob/his", ref_id="0.1"), HOME)
    assert request.session_id == "~alice/~bob/his"


def test_a_new_session_is_new() -> None:
    opened = {guests.enter(ref_service_pb2.OpenSessionRequest(), HOME).session_id for _ in range(9)}
    assert len(opened) == 9
    assert all(home_of(it) == HOME != it for it in opened)


def test_a_guest_knows_its_ids_as_it_gave_them_and_sees_no_other_sessions() -> None:
    response = rank_service_pb2.DescribeRankResponse()
    for session in ("", "owners", "~alice/", "~alice/mine", "~bob/his"):
        response.sessions.add(session_id=session)
    response.generation_error.operation_id = "~alice/7"
    assert [it.session_id for it in guests.leave(response, HOME).sessions] == ["", "mine"]
    assert response.generation_error.operation_id == "7"


def test_a_guest_sees_no_pending_operations_of_others() -> None:
    response = rank_service_pb2.ListPendingResponse()
    for session in ("", "owners", "~alice/", "~alice/mine", "~bob/his"):
        response.operations.add(session_id=session, operation_id=f"{session}7")
    left = [(it.session_id, it.operation_id) for it in guests.leave(response, HOME).operations]
    assert left == [("", "7"), ("mine", "mine7")]
