"""How calls of guests are served: their ids become their own, and each has a share of the rank's threads."""

from __future__ import annotations

import secrets
import uuid
from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeAlias

import grpc
from google.protobuf.message import Message

from rankbridge.v1 import call_pb2, debug_service_pb2, gang_service_pb2, rank_service_pb2, ref_service_pb2

from ..core.errors import BridgeError
from ..core.guests import home
from ..core.rank import Rank
from .registration import KINDS

Handler: TypeAlias = "grpc.RpcMethodHandler[Any, Any]"
_OTHER_IDS = {
    f"rankbridge.v1.{it}"
    for it in (
        *("Queue.name", "NewQueueRequest.name", "EnqueueRequest.queue", "DequeueRequest.queue"),
        *("ShutDownQueueRequest.queue", "ExecuteRequest.withdraw"),
    )
}
_OPERATIONS: dict[type[Message], tuple[str, ...]] = {
    rank_service_pb2.ListPendingResponse: ("operations",),
    debug_service_pb2.GetRecordResponse: ("operations",),
    debug_service_pb2.RecordGrowth: ("operations", "pending"),
}
"""Fields with operations of any session, by message."""
Behaviour = Callable[[Any, grpc.ServicerContext], Any]


def serve_guest(rank: Rank, name: str, method: str, handler: Handler) -> Handler:
    """A handler that serves this guest alone, and refuses when the guest has too many calls under way."""
    guest = home(name)
    stream = method if handler.request_streaming or handler.response_streaming else ""
    behaviour = behaviour_of(handler)

    def serve(request: Any, context: grpc.ServicerContext) -> Any:
        try:
            end = rank.guests.begin(guest, stream)
        except BridgeError as error:
            context.abort(grpc.StatusCode.RESOURCE_EXHAUSTED, str(error))
        if not context.add_callback(end):
            end()
        rank.welcome(guest)
        sent = _each(request, guest) if handler.request_streaming else enter(request, guest)
        answer = behaviour(sent, context)
        return _left(answer, guest) if handler.response_streaming else leave(answer, guest)

    return with_behaviour(handler, serve)


def behaviour_of(handler: Handler) -> Behaviour:
    """The function that answers the calls of a handler."""
    kinds = (handler.unary_unary, handler.unary_stream, handler.stream_unary, handler.stream_stream)
    (behaviour,) = (it for it in kinds if it is not None)
    return behaviour


def with_behaviour(handler: Handler, behaviour: Behaviour) -> Handler:
    """The same handler with another function to answer the calls."""
    return _made(handler, behaviour, handler.request_deserializer)


def with_parser(handler: Handler, parse: Callable[[bytes], Any] | None) -> Handler:
    """The same handler with another function to parse requests; None: they stay bytes."""
    return _made(handler, behaviour_of(handler), parse)


def _made(handler: Handler, behaviour: Behaviour, parse: Callable[[bytes], Any] | None) -> Handler:
    make: Any = KINDS[handler.request_streaming, handler.response_streaming]
    made: Handler = make(behaviour, parse, handler.response_serializer)
    return made


def enter(request: Any, guest: str) -> Any:
    """Makes the ids of a request the guest's own, and returns it."""
    if isinstance(request, Message):
        _enter(request, guest, whole=True)
    return request


def leave(response: Any, guest: str) -> Any:
    """Makes the guest's own ids in a response what the guest knows them as, and returns it."""
    if isinstance(response, Message):
        _leave(response, guest)
    return response


def _each(requests: Iterable[Any], guest: str) -> Iterator[Any]:
    for request in requests:
        yield enter(request, guest)


def _left(responses: Iterable[Any], guest: str) -> Iterator[Any]:
    for response in responses:
        yield leave(response, guest)


def _enter(message: Message, guest: str, *, whole: bool) -> None:
    """`whole`: no part of a list. Such a message has a call, whose session is the guest's own if it names none."""
    for field in message.DESCRIPTOR.fields:
        name, value = field.name, getattr(message, field.name)
        if field.message_type is not None:
            if field.is_repeated:
                for one in _messages(value):
                    _enter(one, guest, whole=False)
            elif message.HasField(name) or (whole and field.message_type is call_pb2.Call.DESCRIPTOR):
                _enter(value, guest, whole=whole)
        elif name.endswith("session_id"):
            setattr(message, name, guest + (value or _new_session(message)))
        elif _is_id(field) and value:
            setattr(message, name, guest + value)
    if whole and isinstance(message, gang_service_pb2.CallRequest) and not message.call.operation_id:
        message.call.operation_id = guest + uuid.uuid4().hex


def _leave(message: Message, guest: str) -> None:
    if isinstance(message, rank_service_pb2.DescribeRankResponse):
        others = [it for it in message.sessions if not it.session_id.startswith(guest)]
        for it in others:
            message.sessions.remove(it)
    for name in _OPERATIONS.get(type(message), ()):
        _keep_own(getattr(message, name), guest)
    for field, value in message.ListFields():
        if field.message_type is not None:
            for one in _messages(value) if field.is_repeated else (value,):
                _leave(one, guest)
        elif _is_id(field):
            setattr(message, field.name, value.removeprefix(guest))


def _keep_own(operations: Any, guest: str) -> None:
    for it in [it for it in operations if not it.session_id.startswith(guest)]:
        operations.remove(it)


def _is_id(field: Any) -> bool:
    return field.name.endswith(("session_id", "operation_id")) or field.full_name in _OTHER_IDS


def _new_session(message: Message) -> str:
    return secrets.token_hex(8) if isinstance(message, ref_service_pb2.OpenSessionRequest) else ""


def _messages(values: Any) -> list[Message]:
    return [
        it for it in (values.values() if hasattr(values, "values") else values) if isinstance(it, Message)
    ]
