"""This rank's part of an operation that was asked for by a stream."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from rankbridge.v1 import gang_service_pb2 as pb
from rankbridge.v1 import operation_service_pb2 as operation_pb

from ...core.alarms import Alarms
from ...core.errors import invalid
from ...core.operations.outcome import Outcome
from ...core.rank import Rank
from ...core.task import Task
from ..operations.table import OPERATIONS
from ..running import answered, submit
from ..wire import values


class BegunPart:
    """A part that is under way, or failed: a response to come. `alarms` tell when its time is over: nobody waits.

    What `running.run` is to an RPC of the operation's own, this is to a stream.
    """

    def __init__(self, rank: Rank, operation: operation_pb.Operation, alarms: Alarms) -> None:
        """Begin it."""
        self._rank = rank
        self._alarms = alarms
        self._lock = threading.Lock()
        self._callbacks: list[Callable[[], None]] = []
        self._task: Task | None = None
        self._refused: Exception | None = None
        self._kind = operation.WhichOneof("kind") or ""
        self.operation_id = ""
        # Whether the answer is there; the operation itself may go on.
        self.done = False
        try:
            self._begin(operation)
        except Exception as error:
            self._refused, self.done = error, True

    def withdraw(self) -> None:
        """Its caller has gone."""
        if self._task is not None:
            self._task.cancel("its caller has gone")

    def then(self, callback: Callable[[], None]) -> None:
        """Calls `callback`, which must be quick, when the response is there."""
        with self._lock:
            if not self.done:
                self._callbacks.append(callback)
                return
        callback()

    def response(self, kind: type[pb.ExecuteResponse]) -> pb.ExecuteResponse:
        """The response, once it is there. Raises nothing."""
        return answered(
            self._rank,
            self._kind or "execute",
            lambda: kind(result=operation_pb.OperationResult(value=values.pack_value(self._outcome()))),
            lambda error: kind(result=operation_pb.OperationResult(error=error)),
        )

    def _begin(self, operation: operation_pb.Operation) -> None:
        if self._kind not in OPERATIONS:
            raise invalid("the operation is missing", expected="one of " + ", ".join(OPERATIONS), got="none")
        request = getattr(operation, self._kind)
        self.operation_id = request.call.operation_id
        self._task, patience = submit(self._rank, OPERATIONS[self._kind], request)
        # Of an operation that was begun before, this call may be less patient than the first, and ends only itself.
        expire = self._expire if patience >= self._task.remaining else self._end
        self._alarms.set(self, time.monotonic() + patience, expire)
        self._task.then(lambda _: self._end())

    def _expire(self) -> None:
        if self._task is not None and (grace := self._task.expire()):
            self._alarms.set(self, time.monotonic() + grace, self._end)
            if self.done:
                self._alarms.cancel(self)
        else:
            self._end()

    def _end(self) -> None:
        with self._lock:
            if self.done:
                return
            self.done = True
            callbacks, self._callbacks = self._callbacks, []
        self._alarms.cancel(self)
        for callback in callbacks:
            callback()

    def _outcome(self) -> Outcome:
        if self._refused is not None:
            raise self._refused
        assert self._task is not None
        return self._task.outcome()
