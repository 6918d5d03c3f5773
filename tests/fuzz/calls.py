"""Random calls of every RPC of a rank, many at a time, and what may come of them."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import grpc
from google.protobuf.descriptor_pool import Default
from google.protobuf.message import DecodeError
from google.protobuf.message_factory import GetMessageClass
from tests.fuzz.messages import Messages

from rankbridge.v1 import error_pb2
from rankbridge_server.core.tokens import Role
from rankbridge_server.service.gate import bearing
from rankbridge_server.service.server import ROLES

AT_ONCE = 32
HANGS_S = 30.0
"""No call takes so long, whatever it is: those that wait have a timeout of their own."""
STREAM_S = 0.2
"""A stream that goes on is left after so long."""
METHODS = {
    name: method
    for name in sorted(ROLES)
    # One of them ends the process, and is to.
    if name.startswith("/rankbridge.") and not name.endswith("/KillRank")
    for method in [Default().FindMethodByName(name[1:].replace("/", "."))]
}
_EXPECTED = {
    grpc.StatusCode.OK,
    grpc.StatusCode.CANCELLED,
    grpc.StatusCode.INVALID_ARGUMENT,
    grpc.StatusCode.RESOURCE_EXHAUSTED,
}


class Finding(AssertionError):
    """Something that must not be, and how to repeat it."""


@dataclass
class Sent:
    """A call under way."""

    method: str
    requests: list[bytes]
    call: Any
    begun: float

    def __str__(self) -> str:
        return f"{self.method} with {[it.hex() for it in self.requests]}"


def fuzz(
    channel: grpc.Channel, messages: Messages, methods: Sequence[str], examples: int, token: str | None
) -> set[grpc.StatusCode]:
    """Makes `examples` calls of each method. Returns the codes that came. Raises Finding."""
    todo = [method for _ in range(examples) for method in methods]
    codes: set[grpc.StatusCode] = set()
    for first in range(0, len(todo), AT_ONCE):
        sent = [_begin(channel, messages, method, token) for method in todo[first : first + AT_ONCE]]
        for one in sent:
            codes.add(_checked(one))
    return codes


def _begin(channel: grpc.Channel, messages: Messages, method: str, token: str | None) -> Sent:
    declared = METHODS[method]
    count = 1 + (len(method) % 4 if declared.client_streaming else 0)
    requests = [messages.any_bytes(declared.input_type) for _ in range(count)]
    call = channel.stream_stream(method, bytes, bytes)(
        iter(requests), metadata=None if token is None else bearing(token), timeout=HANGS_S
    )
    return Sent(method, requests, call, time.monotonic())


def _checked(sent: Sent) -> grpc.StatusCode:
    declared = METHODS[sent.method]
    if declared.server_streaming and not declared.client_streaming:
        # It may go on for ever; what it says first is enough.
        with contextlib.suppress(grpc.RpcError, StopIteration):
            _check_response(sent, next(sent.call))
        sent.call.cancel()
    with contextlib.suppress(grpc.RpcError):
        for response in _responses(sent):
            _check_response(sent, response)
    code: grpc.StatusCode = sent.call.code()
    details = sent.call.details()
    if code is grpc.StatusCode.INTERNAL and "deserializing request" in details:
        # gRPC's own word for bytes that are no message.
        code = grpc.StatusCode.INVALID_ARGUMENT
    if code not in _EXPECTED | {grpc.StatusCode.UNAUTHENTICATED, grpc.StatusCode.PERMISSION_DENIED}:
        raise Finding(f"{code.name}: {details}: {sent}")
    return code


def _responses(sent: Sent) -> Iterator[bytes]:
    yield from sent.call


def _check_response(sent: Sent, data: bytes) -> None:
    try:
        response: Any = GetMessageClass(METHODS[sent.method].output_type).FromString(data)
    except DecodeError as wrong:
        raise Finding(f"no {METHODS[sent.method].output_type.name} came: {sent}") from wrong
    for error in _errors(response):
        if error.code == error_pb2.ERROR_CODE_INTERNAL or "Traceback" in error.message:
            raise Finding(f"{error.message}: {sent}")


def _errors(message: Any) -> Iterator[error_pb2.Error]:
    if isinstance(message, error_pb2.Error):
        yield message
        return
    for field, value in message.ListFields():
        if field.message_type is not None and not field.message_type.GetOptions().map_entry:
            for one in value if field.is_repeated else (value,):
                yield from _errors(one)


def allowed(role: Role) -> list[str]:
    """The methods that a role may call."""
    return [method for method in METHODS if ROLES[method] <= role]
