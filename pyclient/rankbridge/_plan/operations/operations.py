"""Operations that are not waited for, and the outcomes of any operation by its id."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, Unpack

from rankbridge._plan.calls import MARGIN, Call
from rankbridge._plan.failures import error_from_wire
from rankbridge._plan.operations.declare import (
    KINDS,
    CallOptions,
    Scope,
    find_operation,
    group_call,
    milliseconds,
    operation,
    options_of,
    outcome_of,
    path_of,
    plain_call,
    timeout_of,
)
from rankbridge._plan.operations.readers import nothing
from rankbridge._plan.status import OperationStatus, operation_state
from rankbridge._plan.values import from_value
from rankbridge.errors import InvalidArgumentError, RankBridgeError
from rankbridge.v1 import operation_service_pb2 as operation_pb


def submitting(operation: str) -> Callable[..., Call[str]]:
    """Makes the declaration of submitting an operation out of its own: the same arguments, the same request.

    Raises:
        InvalidArgumentError: There is no such operation, or it cannot be submitted.
    """
    declared = find_operation(operation)
    if operation not in KINDS:
        raise InvalidArgumentError(
            "this operation cannot be submitted", expected=f"one of {', '.join(sorted(KINDS))}", got=operation
        )

    @functools.wraps(declared)
    def submitting_it(scope: Scope, *args: Any, **options: Any) -> Call[str]:
        direct = declared(scope, *args, **options)
        if not direct.operation_id:
            raise InvalidArgumentError(
                "a submitted operation needs an id",
                operation=operation,
                expected="operation_id, the same on every member of the group",
                got="none",
            )
        request = operation_pb.SubmitRequest(operation=direct.operation)
        return Call(
            kind="submit",
            path=path_of("OperationService/Submit"),
            rank=scope.rank,
            group=direct.group,
            operation_id=direct.operation_id,
            deadline=scope.timeout,
            request=request.SerializeToString(),
            read=outcome_of(operation_pb.SubmitResponse, str),
        )

    return submitting_it


@operation
def submit(scope: Scope, operation: str, *args: Any, **options: Any) -> Call[str]:
    """Begins one rank's part of an operation and does not wait for its outcome."""
    return submitting(operation)(scope, *args, **options)


def ping(scope: Scope, **options: Unpack[CallOptions]) -> Call[None]:
    """Asks all members whether they are there. Only a gang is asked this: it has no RPC of its own."""
    request = operation_pb.PingRequest(call=options_of(scope, scope.session_id, "ping", **options))
    return group_call(scope, "ping", request, nothing)


@operation
def poll(scope: Scope, operation_id: str) -> Call[OperationStatus]:
    """Tells how far an operation is on one rank."""

    def read(status: operation_pb.OperationStatus) -> OperationStatus:
        value: Any = None
        error: RankBridgeError | None = None
        match status.result.WhichOneof("outcome"):
            case "value":
                value = from_value(status.result.value)
            case "error":
                error = error_from_wire(status.result.error)
        return OperationStatus(rank=scope.rank, state=operation_state(status.state), value=value, error=error)

    request = operation_pb.PollRequest(operation_id=operation_id)
    return plain_call(scope, "poll", request, read)


@operation
def await_operation(scope: Scope, operation_id: str, *, timeout: float | None = None) -> Call[Any]:
    """Waits for an operation's outcome on one rank."""
    seconds = timeout_of(scope, timeout)
    request = operation_pb.AwaitRequest(operation_id=operation_id, timeout_ms=milliseconds(seconds))
    return Call(
        kind="await",
        path=path_of("OperationService/Await"),
        rank=scope.rank,
        operation_id=operation_id,
        deadline=seconds + MARGIN,
        begun=True,
        request=request.SerializeToString(),
        read=outcome_of(operation_pb.AwaitResponse, from_value),
    )


@operation
def cancel(scope: Scope, operation_id: str) -> Call[bool]:
    """Withdraws an operation that was not admitted yet."""
    request = operation_pb.CancelRequest(operation_id=operation_id)
    return plain_call(scope, "cancel", request, bool)
