"""What goes by a stream of one rank: requests and answers of ``GangService.Execute``. No I/O."""

from __future__ import annotations

from typing import Any, TypeVar

from rankbridge._plan.calls import Call
from rankbridge._plan.failures import error_from_wire
from rankbridge._plan.operations.declare import path_of
from rankbridge.errors import ProtocolError, RankBridgeError
from rankbridge.v1 import gang_service_pb2 as gang_pb

T = TypeVar("T")

EXECUTE = path_of("GangService/Execute")

MAX_MESSAGE_BYTES = 256 << 20
"""Longest message. A longer one would end the stream, and with it all that is under way."""

_ROOM = 64
"""More than a request has beside its part."""


class StreamOver(Exception):
    """The stream has ended as the rank wanted it, without an answer: what was sent was not begun."""


class StreamLost(Exception):
    """The connection of a stream has ended, and not as the rank wanted it: what was sent may have been begun."""


def requesting(call: Call[Any]) -> gang_pb.ExecuteRequest | None:
    """Makes the request of a gang call, or of one rank's part of an operation. None: the call goes by its own RPC."""
    if call.gang_call is not None:
        return call.gang_call
    if call.operation is None or call.operation.ByteSize() + _ROOM > MAX_MESSAGE_BYTES:
        return None
    return gang_pb.ExecuteRequest(part=call.operation)


def result_of(call: Call[T], response: gang_pb.ExecuteResponse) -> T:
    """Gives what a gang call or a part came to.

    Raises:
        RankBridgeError: It failed.
    """
    if call.gang_call is not None:
        return call.result(response)
    match response.WhichOneof("outcome"):
        case "result":
            return call.result(response.result)
        case "error":
            raise error_from_wire(response.error)
    other = ProtocolError("a part is answered by something else", expected="a result", got=str(response))
    raise call.misunderstood(other)


def withdrawing(operation_id: str, number: int) -> bytes:
    """Makes the request that withdraws the one of that number. Its id is for older ranks, which know no other way."""
    return gang_pb.ExecuteRequest(withdraw=operation_id, number=number).SerializeToString()


def unasked(response: gang_pb.ExecuteResponse) -> RankBridgeError:
    """Makes the exception of an answer that is no request's: the rank has refused the stream, or knows no numbers."""
    if response.HasField("error"):
        return error_from_wire(response.error)
    return ProtocolError(
        "a rank has answered what it was not asked",
        expected="the number of a request that is under way",
        got=f"number {response.number}" if response.number else "no number, as of an older rankbridge",
    )
