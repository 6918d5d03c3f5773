"""Gang calls between the wire and the core: parts of members, their outcomes, whole calls."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from concurrent.futures import Future
from dataclasses import replace
from typing import Any

from rankbridge.v1 import gang_service_pb2 as pb
from rankbridge.v1 import operation_service_pb2 as operation_pb

from ..core.errors import BridgeError, Failure, Phase, Place, invalid
from ..core.gang_calls import Leave, Route
from ..core.group import WORLD
from ..core.rank import Rank
from ..core.task import Call, Task, failure_of
from . import values, wire
from .operations import GANG_OPERATIONS, OPERATIONS
from .running import answered


class WireParts:
    """Implements `core.gang_calls.Parts`."""

    def __init__(self, rank: Rank) -> None:
        self._rank = rank

    def begin(self, part: bytes, first: bool) -> Task:
        """Submit this rank's part."""
        operation = operation_pb.Operation.FromString(part)
        kind = operation.WhichOneof("kind") or ""
        request = getattr(operation, kind)
        try:
            known, call = OPERATIONS[kind], wire.call(request.call, self._rank.default_timeout)
            return self._rank.submit(
                known.core, known.args(request), replace(call, first=True) if first else call
            )
        except Exception as error:
            place = Place(
                rank=self._rank.describe().rank,
                group=request.call.group,
                operation=kind,
                operation_id=request.call.operation_id,
                generation=request.call.generation,
            )
            raise BridgeError(failure_of(error)).at(place, Phase.CHECK) from error

    def same(self, one: bytes, other: bytes) -> bool:
        """Whether they ask for the same, whatever their timeouts."""
        operations = [operation_pb.Operation.FromString(it) for it in (one, other)]
        for it in operations:
            getattr(it, it.WhichOneof("kind") or "").call.timeout_ms = 0
        return operations[0] == operations[1]

    def result(self, future: Future[Any]) -> bytes:
        """The outcome of an operation that is done."""
        return operation_pb.OperationResult(value=values.pack_value(future.result())).SerializeToString()

    def failure(self, failure: Failure) -> bytes:
        """A failure as an outcome."""
        return operation_pb.OperationResult(error=wire.pack_error(failure)).SerializeToString()

    def call(self, request: bytes, leave: Leave) -> bytes:
        """Do a gang call that another rank was asked for."""
        return respond(self._rank, pb.CallRequest.FromString(request), leave).SerializeToString()


def respond(rank: Rank, request: pb.CallRequest, leave: Leave) -> pb.CallResponse:
    """Do a gang call, here or by way of its leader."""
    return answered(
        rank, "call", lambda: _respond(rank, request, leave), lambda error: pb.CallResponse(error=error)
    )


def _respond(rank: Rank, request: pb.CallRequest, leave: Leave) -> pb.CallResponse:
    call = wire.call(request.call, rank.default_timeout)
    route = rank.route(call)
    ranks = route.group.description.ranks
    kind = _checked(request.operations, len(ranks))
    message = request.call
    message.operation_id = message.operation_id or uuid.uuid4().hex
    if not route.is_here:
        return _asked(rank, route, request, call, leave)
    message.group = message.group or WORLD
    message.generation = route.generation.number
    for operation in request.operations:
        getattr(operation, kind).call.CopyFrom(message)
    parts = [it.SerializeToString() for it in request.operations]
    if len(parts) == 1:
        parts *= len(ranks)
    results = rank.gang_calls.lead(route, message.operation_id, call.timeout, parts, leave)
    return _response(message.operation_id, ranks, results)


def _asked(rank: Rank, route: Route, request: pb.CallRequest, call: Call, leave: Leave) -> pb.CallResponse:
    request.call.timeout_ms = max(1, round(call.timeout * 1000))
    request.call.generation = route.generation.number
    try:
        return pb.CallResponse.FromString(
            rank.gang_calls.ask(route, request.SerializeToString(), call.timeout, leave)
        )
    except BridgeError as error:
        if not error.failure.indefinite:
            raise
        failed = [
            _failed(rank, route, error, request.call.operation_id, it) for it in route.group.description.ranks
        ]
        return _response(request.call.operation_id, route.group.description.ranks, failed)


def _failed(rank: Rank, route: Route, error: BridgeError, operation_id: str, of: int) -> bytes:
    place = Place(
        rank=of,
        group=route.group.name,
        operation="call",
        operation_id=operation_id,
        generation=route.generation.number,
    )
    return operation_pb.OperationResult(error=wire.pack_error(error.at(place).failure)).SerializeToString()


def _response(operation_id: str, ranks: Sequence[int], results: Sequence[bytes]) -> pb.CallResponse:
    response = pb.CallResponse()
    outcomes = response.outcomes
    outcomes.operation_id = operation_id
    for rank, result in zip(ranks, results, strict=True):
        member = outcomes.members.add(rank=rank)
        if result:
            member.result.MergeFromString(result)
    return response


def _checked(operations: Sequence[operation_pb.Operation], size: int) -> str:
    """The kind of all parts. Raises INVALID_ARGUMENT."""
    if len(operations) not in (1, size):
        raise invalid(
            "a gang call has one part for all members, or one for each",
            expected=f"1 or {size}",
            got=str(len(operations)),
        )
    kinds = [_kind(it) for it in operations]
    if len(set(kinds)) > 1:
        raise invalid("the parts of a gang call are of one kind", expected=kinds[0], got=", ".join(kinds))
    for operation in operations:
        if getattr(operation, kinds[0]).HasField("call"):
            raise invalid(
                "a part of a gang call has a call of its own", expected="the call of all", got=kinds[0]
            )
    return kinds[0]


def _kind(operation: operation_pb.Operation) -> str:
    kind = operation.WhichOneof("kind")
    if kind not in GANG_OPERATIONS:
        raise invalid(
            "this is no gang call", expected="one of " + ", ".join(GANG_OPERATIONS), got=kind or "none"
        )
    return kind
