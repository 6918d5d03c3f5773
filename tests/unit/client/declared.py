"""What declarations of operations make, for tests: no rank is asked."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from google.protobuf.message import Message

from rankbridge import Ref, to_value
from rankbridge._plan import operations as ops
from rankbridge._plan.calls import Call
from rankbridge._plan.gang_core import GangCore
from rankbridge._plan.procedures import member_calls
from rankbridge.v1 import value_pb2
from rankbridge.v1.operation_service_pb2 import RunRequest

SCOPE = ops.Scope(rank=2, session_id="mine", timeout=30.0)
"""Rank 2 in a session of its own."""


def gang(size: int = 4) -> GangCore[Any]:
    """A gang of which only the calls are made."""
    return GangCore([f"unix:{rank}" for rank in range(size)], session_id="gang", timeout=30.0)


def ref(rank: int = 2, number: int = 0, session_id: str = "theirs") -> Ref:
    """A ref on a float32[2]."""
    return Ref(
        id=f"{rank}.{number}", rank=rank, session_id=session_id, dtype="float32", shape=(2,), device="cpu"
    )


def refs(number: int = 0, session_id: str = "theirs") -> list[Ref]:
    """A ref of each of four ranks."""
    return [ref(rank, number, session_id) for rank in range(4)]


def asked(call: Call[Any], request: type[Message]) -> Any:
    """The request of a call."""
    if call.operation is None:
        return request.FromString(call.body)
    part = getattr(RunRequest.FromString(call.body).operation, call.kind)
    assert isinstance(part, request)
    return part


def of_members(operation: str, given: Any, request: type[Message], **options: Any) -> list[Any]:
    """The request that each of four members gets of what a gang is asked for."""
    calls = calls_of(operation, given, **options)
    assert [call.rank for call in calls] == [0, 1, 2, 3]
    return [asked(call, request) for call in calls]


def calls_of(operation: str, given: Any, **options: Any) -> Sequence[Call[Any]]:
    """The calls on four members of what a gang is asked for."""
    return member_calls(gang(), operation, ops.find_operation(operation), given, range(4), options)


def answer(call: Call[Any], response: Any, value: object) -> Any:
    """What a call makes of a rank's answer with this value."""
    written = value if isinstance(value, value_pb2.Value) else to_value(value)
    return call.result(response(value=written).SerializeToString())
