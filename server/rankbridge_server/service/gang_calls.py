"""Gang calls between protobuf and the core: the members' parts, their outcomes, whole calls."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from functools import lru_cache
from typing import Any, TypeVar, cast

from google.protobuf.unknown_fields import UnknownFieldSet

from rankbridge.v1 import (
    call_pb2,
    collective_service_pb2 as collective_pb,
    gang_service_pb2 as pb,
    operation_service_pb2 as operation_pb,
)

from ..core.errors import BridgeError, ErrorCode, Failure, Phase, Place, invalid
from ..core.gang_calls.route import Route
from ..core.groups.group import WORLD
from ..core.operations.outcome import Outcome
from ..core.rank import Rank
from ..core.refs.refs import Ref
from ..core.task import Task, failure_of
from .answering import answered
from .operations.table import GANG_OPERATIONS, OPERATIONS
from .pending import Pending
from .wire import values, wire

Response = TypeVar("Response", pb.CallResponse, pb.ExecuteResponse)


class WireParts:
    """Implements `core.gang_calls.Parts`."""

    def __init__(self, rank: Rank) -> None:
        self._rank = rank

    def begin(self, part: bytes, first: bool) -> Task:
        """Submits this rank's part."""
        operation = operation_pb.Operation.FromString(part)
        kind = operation.WhichOneof("kind") or ""
        message: call_pb2.Call = getattr(operation, kind).call if kind else _call_of_unknown(operation)
        try:
            if kind not in OPERATIONS:
                raise BridgeError.of(
                    ErrorCode.UNSUPPORTED_OPERATION,
                    "the leader's version of rankbridge has an operation that this rank's version does not know",
                    expected="one of " + ", ".join(GANG_OPERATIONS),
                    got=kind or "another",
                )
            known, call = OPERATIONS[kind], wire.call(message, self._rank.default_timeout, first=first)
            return self._rank.submit(known.core, known.args(getattr(operation, kind)), call, part=True)
        except Exception as error:
            place = Place(
                rank=self._rank.describe().rank,
                group=message.group,
                operation=kind,
                operation_id=message.operation_id,
                generation=message.generation,
            )
            raise BridgeError(failure_of(error)).at(place, Phase.CHECK) from error

    def same(self, one: bytes, other: bytes) -> bool:
        """Whether two parts are equal except for their timeouts, places in traces and lines that have called."""
        operations = [operation_pb.Operation.FromString(it) for it in (one, other)]
        for it in operations:
            call = getattr(it, it.WhichOneof("kind") or "").call
            call.timeout_ms, call.traceparent, call.site = 0, "", ""
        return operations[0] == operations[1]

    def result(self, outcome: Outcome) -> bytes:
        """The serialized result of an operation that has succeeded."""
        # Operations in place return the same ref again and again, and many return none.
        return _packed_again(outcome) if outcome is None or isinstance(outcome, Ref) else _packed(outcome)

    def failure(self, failure: Failure) -> bytes:
        """The serialized result of an operation that has failed."""
        return _failed(failure)

    def call(self, request: bytes) -> PendingGangCall:
        """Begin a gang call that another rank was asked for."""
        return PendingGangCall(self._rank, pb.CallRequest.FromString(request))


def _call_of_unknown(operation: operation_pb.Operation) -> call_pb2.Call:
    """The call of a part of an unknown kind: every request has its call in the same field."""
    fields: Any = UnknownFieldSet(operation)
    for field in fields:
        if isinstance(field.data, bytes):
            return collective_pb.BarrierRequest.FromString(field.data).call
    return call_pb2.Call()


def _packed(outcome: Outcome) -> bytes:
    return operation_pb.OperationResult(value=values.pack_value(outcome)).SerializeToString()


@lru_cache(maxsize=1024)
def _packed_again(outcome: Ref | None) -> bytes:
    return _packed(outcome)


class PendingGangCall(Pending):
    """A gang call that came to this rank."""

    def __init__(self, rank: Rank, request: pb.CallRequest) -> None:
        """Begins the call on this rank, or relays it to the leader."""
        self._rank = rank
        self.operation_id = request.call.operation_id
        self._withdraw: Callable[[], None] = lambda: None
        self._future: Future[Any] = Future()
        self._read: Callable[[Future[Any], type[Any]], Any] = _refused
        try:
            self._begin(request)
        except Exception as error:
            self._future.set_exception(error)

    @property
    def done(self) -> bool:
        """Whether the response is ready."""
        return self._future.done()

    def withdraw(self) -> None:
        """Withdraws every part that was not admitted yet."""
        self._withdraw()

    def then(self, callback: Callable[[], None]) -> None:
        """Calls `callback`, which must be quick, when the response is ready."""
        self._future.add_done_callback(lambda _: callback())

    def stream_response(self) -> pb.ExecuteResponse:
        """The response for a stream, once it is ready. Raises nothing."""
        return self.response(pb.ExecuteResponse)

    def response(self, kind: type[Response]) -> Response:
        """Waits for the response, in the form of a call or of a stream: they are written alike. Raises nothing."""
        return answered(
            self._rank,
            "call",
            lambda: cast(Response, self._read(self._future, kind)),
            lambda error: kind(error=error),
        )

    def packed(self) -> bytes:
        """The serialized response."""
        return self.response(pb.CallResponse).SerializeToString()

    def _begin(self, request: pb.CallRequest) -> None:
        rank = self._rank
        call = wire.call(request.call, rank.default_timeout)
        route = rank.route(call)
        ranks = route.group.description.ranks
        kind = _checked(request.operations, len(ranks))
        message = request.call
        message.operation_id = self.operation_id = message.operation_id or uuid.uuid4().hex
        message.generation = route.generation.number
        if not route.is_here:
            message.timeout_ms = max(1, round(call.timeout * 1000))
            body = request.SerializeToString()
            self._future, self._withdraw = rank.gang_calls.relayed.ask(route, body, call.timeout)
            self._read = lambda answer, kind: self._relayed(route, answer, kind)
            return
        message.group = message.group or WORLD
        for operation in request.operations:
            getattr(operation, kind).call.CopyFrom(message)
        parts = [it.SerializeToString() for it in request.operations]
        if len(parts) == 1:
            parts *= len(ranks)
        led = OPERATIONS[kind].core.led
        self._future, self._withdraw = rank.gang_calls.lead(
            route, self.operation_id, call.timeout, parts, led=led
        )
        self._read = lambda results, kind: _response(kind, self.operation_id, ranks, results.result())

    def _relayed(self, route: Route, answer: Future[bytes], kind: type[Response]) -> Response:
        try:
            return kind.FromString(answer.result())
        except BridgeError as error:
            if not error.failure.indefinite:
                raise
            ranks = route.group.description.ranks
            failed = [_failed(error.at(route.place(it, self.operation_id)).failure) for it in ranks]
            return _response(kind, self.operation_id, ranks, failed)


def _refused(future: Future[Any], kind: type[Any]) -> Any:
    """Raises the error for which the call was not begun."""
    raise future.exception() or RuntimeError("it was begun")


def _failed(failure: Failure) -> bytes:
    return operation_pb.OperationResult(error=wire.pack_error(failure)).SerializeToString()


def _response(
    kind: type[Response], operation_id: str, ranks: Sequence[int], results: Sequence[bytes]
) -> Response:
    response = kind()
    outcomes = response.outcomes
    outcomes.operation_id = operation_id
    for rank, result in zip(ranks, results, strict=True):
        member = outcomes.members.add(rank=rank)
        if result:
            member.result.MergeFromString(result)
    return response


def _checked(operations: Sequence[operation_pb.Operation], size: int) -> str:
    """The kind of the parts, which must be the same for all. Raises INVALID_ARGUMENT."""
    if len(operations) not in (1, size):
        raise invalid(
            "a gang call needs one operation for all members, or one for each",
            expected=f"1 or {size}",
            got=str(len(operations)),
        )
    kinds = [_kind(it) for it in operations]
    if len(set(kinds)) > 1:
        raise invalid(
            "the operations of a gang call must be of one kind", expected=kinds[0], got=", ".join(kinds)
        )
    for operation in operations:
        if getattr(operation, kinds[0]).HasField("call"):
            raise invalid(
                "an operation of a gang call has a call of its own", expected="the common call", got=kinds[0]
            )
    return kinds[0]


def _kind(operation: operation_pb.Operation) -> str:
    kind = operation.WhichOneof("kind")
    if kind not in GANG_OPERATIONS:
        raise invalid(
            "this operation cannot be a gang call",
            expected="one of " + ", ".join(GANG_OPERATIONS),
            got=kind or "none",
        )
    return kind
