"""Operations from request to response. Unary calls, `Submit` and streams are adapters over `Pending`."""

from __future__ import annotations

import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import replace
from typing import Any, NoReturn

import grpc

from rankbridge.v1 import gang_service_pb2 as gang_pb, operation_service_pb2 as pb

from ..core.alarms import Alarms
from ..core.errors import BridgeError, invalid
from ..core.operations.outcome import Outcome
from ..core.rank import Rank
from ..core.task import Task
from .answering import answered
from .operations.table import OPERATIONS
from .operations.wire_operation import Request, WireOperation
from .wire import values, wire

# One for all ranks of a process. It starts its thread with the first caller that does not wait itself.
_ALARMS = Alarms("pending")


class Pending(ABC):
    """An operation that is under way, done or refused. Thread-safe."""

    operation_id: str

    @property
    @abstractmethod
    def done(self) -> bool:
        """Whether the response is ready; the operation itself may go on."""

    @abstractmethod
    def withdraw(self) -> None:
        """Withdraws what was not admitted yet, because the caller has gone."""

    @abstractmethod
    def then(self, callback: Callable[[], None]) -> None:
        """Calls `callback`, which must be quick, when the response is ready. For one callback, instead of waiting."""

    @abstractmethod
    def stream_response(self) -> gang_pb.ExecuteResponse:
        """The response for a stream, once it is ready. Raises nothing."""

    def withdraw_with(self, context: grpc.ServicerContext) -> None:
        """Withdraws the operation when the caller of this RPC hangs up or its deadline passes."""
        if not context.add_callback(self.withdraw):
            self.withdraw()


class PendingPart(Pending):
    """This rank's own part of an operation; the caller asks the other members itself."""

    def __init__(
        self, rank: Rank, operation: WireOperation[Any, Any] | None, request: Request | None
    ) -> None:
        """Begins the part. Without an operation or a request it is refused."""
        self._rank = rank
        self._lock = threading.Lock()
        self._callback: Callable[[], None] = lambda: None
        self._task: Task | None = None
        self._refused: Exception | None = None
        self._patience = 0.0
        self._done = False
        self.name = operation.core.name if operation else ""
        self.operation_id = request.call.operation_id if request else ""
        try:
            self._begin(operation, request)
        except Exception as error:
            self._refused, self._done = error, True

    @classmethod
    def of(cls, rank: Rank, operation: pb.Operation) -> PendingPart:
        """Begins a part of any kind."""
        kind = operation.WhichOneof("kind") or ""
        return cls(rank, OPERATIONS.get(kind), getattr(operation, kind) if kind else None)

    @property
    def done(self) -> bool:
        """Whether the response is ready; the operation itself may go on."""
        return self._done

    def withdraw(self) -> None:
        """Withdraws the part if it was not admitted yet."""
        if self._task is not None:
            self._task.cancel("its caller has gone")

    def check(self) -> None:
        """Raises the error of a part that was refused."""
        if self._refused is not None:
            raise self._refused

    def outcome(self) -> Outcome:
        """Waits for the outcome, at most for the call's timeout. Raises BridgeError.

        After `then` only the callback calls it, and it does not wait.
        """
        self.check()
        assert self._task is not None
        return self._task.outcome() if self._done else self._task.wait(self._patience)

    def then(self, callback: Callable[[], None]) -> None:
        """Calls `callback`, which must be quick, when the outcome is ready or the timeout has passed."""
        self._callback = callback
        if self._task is None:
            callback()
            return
        # A repeated call may have a shorter timeout than the first; its end does not end the operation.
        expire = self._expire if self._patience >= self._task.remaining else self._end
        _ALARMS.set(self, time.monotonic() + self._patience, expire)
        self._task.then(lambda _: self._end())

    def stream_response(self) -> gang_pb.ExecuteResponse:
        """The response for a stream, once it is ready. Raises nothing."""
        return answered(
            self._rank,
            self.name or "execute",
            lambda: gang_pb.ExecuteResponse(
                result=pb.OperationResult(value=values.pack_value(self.outcome()))
            ),
            lambda error: gang_pb.ExecuteResponse(result=pb.OperationResult(error=error)),
        )

    def _begin(self, operation: WireOperation[Any, Any] | None, request: Request | None) -> None:
        if operation is None or request is None:
            raise invalid("the operation is missing", expected="one of " + ", ".join(OPERATIONS), got="none")
        call = wire.call(request.call, self._rank.default_timeout)
        self._patience = call.timeout
        try:
            args = operation.args(request)
        except BridgeError as error:
            # As an operation that cannot be planned: the leader learns of it, and no member waits for this one.
            self._rank.submit(replace(operation.core, make_plan=_raising(error)), None, call)
            raise
        self._task = self._rank.submit(operation.core, args, call)

    def _expire(self) -> None:
        if self._task is not None and (grace := self._task.expire()):
            _ALARMS.set(self, time.monotonic() + grace, self._end)
            if self._done:
                _ALARMS.cancel(self)
        else:
            self._end()

    def _end(self) -> None:
        with self._lock:
            if self._done:
                return
            self._done = True
        _ALARMS.cancel(self)
        self._callback()


def _raising(error: BridgeError) -> Callable[[object, object], NoReturn]:
    def make_plan(_site: object, _args: object) -> NoReturn:
        raise error

    return make_plan
