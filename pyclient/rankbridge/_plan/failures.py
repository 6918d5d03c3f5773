"""From failures on the wire, and of gRPC itself, to exceptions."""

from __future__ import annotations

from typing import Any

import grpc

from rankbridge import errors
from rankbridge._plan.wire import fields_of, short_name
from rankbridge.errors import Activity, ErrorCode, Raised, RankBridgeError, RankDetail
from rankbridge.v1 import error_pb2

_CLASSES: dict[str, type[RankBridgeError]] = {
    cls.code: cls
    for cls in vars(errors).values()
    if isinstance(cls, type) and issubclass(cls, RankBridgeError) and cls.code is not ErrorCode.UNSPECIFIED
    if "code" in vars(cls)
}
"""Every class that is the leaf of a code, by code."""


def error_from_wire(error: error_pb2.Error) -> RankBridgeError:
    """Makes the exception of a structured error.

    A code of a newer protocol becomes a plain ``RankBridgeError``; its message is kept.
    """
    cls = _CLASSES.get(short_name(error_pb2.ErrorCode.items(), error.code).upper(), RankBridgeError)
    return cls(
        error.message,
        indefinite=error.indefinite,
        phase=short_name(error_pb2.Phase.items(), error.phase),
        rank=error.rank,
        group=error.group,
        operation=error.operation,
        operation_id=error.operation_id,
        generation=error.generation,
        expected=error.expected,
        got=error.got,
        ranks=[_detail(it) for it in error.ranks],
        raised=Raised(**fields_of(Raised, error.raised)) if error.HasField("raised") else None,
    )


def _detail(detail: error_pb2.RankDetail) -> RankDetail:
    activity = None
    if detail.HasField("activity"):
        doing = short_name(error_pb2.Doing.items(), detail.activity.doing)
        activity = Activity(doing=doing, **fields_of(Activity, detail.activity))
    state = short_name(error_pb2.RankState.items(), detail.state)
    return RankDetail(state=state, activity=activity, **fields_of(RankDetail, detail))


_STATUS_CLASSES: dict[grpc.StatusCode, type[RankBridgeError]] = {
    grpc.StatusCode.UNAVAILABLE: errors.UnavailableError,
    grpc.StatusCode.DEADLINE_EXCEEDED: errors.DeadlineExceededError,
    grpc.StatusCode.CANCELLED: errors.CallCancelledError,
    grpc.StatusCode.RESOURCE_EXHAUSTED: errors.ResourceExhaustedError,
    grpc.StatusCode.UNAUTHENTICATED: errors.NotAllowedError,
    grpc.StatusCode.PERMISSION_DENIED: errors.NotAllowedError,
    grpc.StatusCode.INTERNAL: errors.InternalError,
    grpc.StatusCode.INVALID_ARGUMENT: errors.ProtocolError,
    grpc.StatusCode.UNIMPLEMENTED: errors.ProtocolError,
}

# Statuses with which a server refuses a call that it has not begun.
_REFUSED = {
    grpc.StatusCode.UNIMPLEMENTED,
    grpc.StatusCode.UNAUTHENTICATED,
    grpc.StatusCode.PERMISSION_DENIED,
    grpc.StatusCode.INVALID_ARGUMENT,
}


# What grpcio's asyncio front tells of a stream that ended while something was being sent, in the place of its status:
# in a loop that sent all the time to a server that hung up, 433 times of 600.
_ENDED_WHILE_SENDING = "Internal error from Core"


def error_from_rpc(
    status: grpc.StatusCode,
    details: str,
    *,
    target: str,
    begun: bool = False,
    **call: Any,
) -> RankBridgeError:
    """Makes the exception of a call that gRPC did not bring to a structured end.

    It is definite if the call provably never left this process, or was refused unseen; whatever may have
    reached the rank is indefinite.

    Args:
        status: What gRPC says, not OK.
        details: What gRPC says in words.
        target: Where it was called.
        begun: Whether an earlier call has begun the operation. Then the error is always indefinite.
        **call: What was called, as errors have it: `rank`, `group`, `operation`, `operation_id`.
    """
    if status is grpc.StatusCode.INTERNAL and details == _ENDED_WHILE_SENDING:
        status, details = grpc.StatusCode.UNAVAILABLE, "the stream ended while it was sent to"
    cls = _STATUS_CLASSES.get(status, errors.TransportError)
    never_sent = status is grpc.StatusCode.UNAVAILABLE and _never_sent(details)
    hint = "; does it speak TLS, or demand a certificate?" if never_sent and _hung_up(details) else ""
    return cls(
        f"gRPC {status.name} from {target}: {details or 'no details'}{hint}",
        indefinite=begun or not (never_sent or status in _REFUSED),
        **call,
    )


def _never_sent(details: str) -> bool:
    # gRPC's status does not tell a call that found no connection from one that lost it. These are the words
    # of its channel for the former; should they change, the error becomes indefinite, which is never wrong.
    return details.startswith(("failed to connect to all addresses", "DNS resolution failed"))


def _hung_up(details: str) -> bool:
    # How it looks when a server accepts the connection and then shows this client out.
    return "Socket closed" in details or "Connection reset" in details
