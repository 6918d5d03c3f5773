"""What goes by a stream of one rank: requests and answers of ``GangService.Execute``. Bytes out, bytes in, no I/O."""

from __future__ import annotations

from typing import Any, TypeVar

from google.protobuf.message import DecodeError

from rankbridge._plan.calls import Call
from rankbridge._plan.failures import error_from_wire
from rankbridge._plan.gang_calls import MAX_PART
from rankbridge._plan.operations.declare import path_of
from rankbridge.errors import ProtocolError, RankBridgeError
from rankbridge.v1 import gang_service_pb2 as gang_pb

T = TypeVar("T")

__all__ = [
    "EXECUTE",
    "StreamLost",
    "StreamOver",
    "calling",
    "parting",
    "result_of",
    "unasked",
    "withdrawing",
]

EXECUTE = path_of("GangService/Execute")


class StreamOver(Exception):
    """The stream has ended as the rank wanted it, without an answer: what was sent was not begun."""


class StreamLost(Exception):
    """The connection of a stream has ended, and not as the rank wanted it: what was sent may have been begun."""


def calling(request: bytes) -> bytes:
    """Makes the request for a gang call of a ``CallRequest``. What answers it is written as a ``CallResponse`` is."""
    message = gang_pb.ExecuteRequest()
    message.call.MergeFromString(request)
    return message.SerializeToString()


def parting(call: Call[Any]) -> bytes | None:
    """Makes the request for one rank's part of an operation. None: the call goes by itself.

    A part needs an operation id, by which it can be told from others, and is small enough to keep nobody waiting.
    """
    if call.operation is None or not call.operation_id or call.operation.ByteSize() > MAX_PART:
        return None
    return gang_pb.ExecuteRequest(part=call.operation).SerializeToString()


def result_of(call: Call[T], response: bytes) -> T:
    """Gives what a part came to.

    Raises:
        RankBridgeError: It failed, or the rank has refused the stream.
    """
    result: T = call._understood(_result, call, response)
    return result


def _result(call: Call[T], response: bytes) -> T:
    message = gang_pb.ExecuteResponse.FromString(response)
    match message.WhichOneof("outcome"):
        case "result":
            # The response of any operation is written as its result here.
            return call.result(message.result.SerializeToString())
        case "error":
            raise error_from_wire(message.error)
    raise ProtocolError("a part that is answered by something else", expected="a result", got=str(message))


def withdrawing(operation_id: str) -> bytes:
    """Makes the request that withdraws what was sent under an id."""
    return gang_pb.ExecuteRequest(withdraw=operation_id).SerializeToString()


def unasked(response: bytes) -> RankBridgeError:
    """Makes the exception of an answer that comes before anything was sent: the rank has refused the stream."""
    try:
        message = gang_pb.ExecuteResponse.FromString(response)
    except DecodeError:
        message = gang_pb.ExecuteResponse()
    if message.HasField("error"):
        return error_from_wire(message.error)
    return ProtocolError("a rank has answered what it was not asked")
