"""Running a call: whatever fails becomes the `error` of its response."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import grpc

from rankbridge.v1 import error_pb2

from ..core.errors import BridgeError, Place
from ..core.operations.outcome import Outcome
from ..core.rank import Rank
from ..core.task import Task, failure_of
from .operations.wire_operation import R, WireOperation
from .wire import wire

Response = TypeVar("Response")


def submit(rank: Rank, operation: WireOperation[R, Any], request: R) -> tuple[Task, float]:
    """Submit one operation; gives its task and how many seconds its caller waits. Raises BridgeError."""
    call = wire.call(request.call, rank.default_timeout)
    return rank.submit(operation.core, operation.args(request), call), call.timeout


def run(rank: Rank, operation: WireOperation[R, Any], request: R, context: grpc.ServicerContext) -> Outcome:
    """Submit one operation and wait for its outcome, at most for its timeout. Raises BridgeError.

    A caller that hangs up, or whose RPC deadline passes, before the operation is admitted withdraws it.
    """
    task, patience = submit(rank, operation, request)
    if not context.add_callback(lambda: task.cancel("its caller has gone")):
        task.cancel("its caller has gone")
    return task.wait(patience)


def answered(
    rank: Rank,
    operation: str,
    answer: Callable[[], Response],
    refused: Callable[[error_pb2.Error], Response],
) -> Response:
    """`answer`'s response, or the response that `refused` makes of what it raised."""
    try:
        return answer()
    except BridgeError as error:
        place = Place(rank=rank.describe().rank, operation=operation)
        return refused(wire.pack_error(error.at(place).failure))
    except Exception as error:
        place = Place(rank=rank.describe().rank, operation=operation)
        return refused(wire.pack_error(BridgeError(failure_of(error)).at(place).failure))
