"""The end of a queue that has a thread, and the calls that wait there."""

from __future__ import annotations

import time
from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass

from ..errors import BridgeError, ErrorCode, Phase
from ..task import Task, cancelled, failure_of
from ..waker import Waker
from .connection import STALL_S
from .loop import Loop
from .view import QueueView


@dataclass(frozen=True, slots=True)
class WaitingCall:
    """A waiting call. `data`: the value that it writes; empty for one that reads."""

    task: Task
    data: bytes = b""


class WaitingLoop(Loop):
    """Answers calls in the order in which they came. The thread itself calls all methods but `wait` and `close`."""

    def __init__(self, view: QueueView, waker: Waker) -> None:
        super().__init__(f"{view.group}/{view.name}", waker)
        self.view = view
        self._calls: list[WaitingCall] = []
        # Why nothing is written or read any more.
        self._over: BridgeError | None = None

    def wait(self, call: WaitingCall) -> None:
        """Lets a call wait for its turn."""
        task = call.task

        def add() -> None:
            if self._over is not None:
                task.fail(self._over)
            elif not task.done:
                self._calls.append(call)
                task.arrived(lambda: self._leave(task))

        # Set at once, so that whoever gives up from now on learns what was missing.
        task.enter(Phase.ADMISSION)
        if not self.call_soon(add):
            task.fail(self._over or shut_down_here())

    def close(self, error: BridgeError) -> None:
        """Ends it with its group: waiting calls get `error`. Does not wait."""

        def close() -> None:
            self._end(error)
            self.finish()

        self.call_soon(close)

    def due(self) -> float | None:
        """When the next call gives up, or a message is sent again."""
        dues = [call.task.deadline for call in self._calls]
        if self._stalled():
            dues.append(time.monotonic() + STALL_S)
        return min(dues, default=None)

    def fault(self, error: Exception) -> None:
        """Answers all."""
        self._end(BridgeError(failure_of(error)))

    @abstractmethod
    def _stalled(self) -> bool:
        """Whether a message found no room that only time can make."""

    @abstractmethod
    def _missing(self) -> BridgeError:
        """The error of a call whose time is over."""

    def _end(self, error: BridgeError) -> None:
        self._over = self._over or error
        self._fail_waiting(error)

    def _next_call(self) -> WaitingCall | None:
        """The first call, which waits no longer."""
        while self._calls:
            call = self._calls.pop(0)
            if call.task.enter(Phase.DATA):
                return call
        return None

    def _expire(self) -> None:
        """Answers the calls whose time is over."""
        now = time.monotonic()
        for call in self._remove(lambda call: call.task.deadline <= now):
            call.task.fail(self._missing())

    def _fail_waiting(self, error: BridgeError) -> None:
        for call in self._remove(lambda _: True):
            call.task.fail(error)

    def _leave(self, task: Task) -> None:
        def leave() -> None:
            if self._remove(lambda call: call.task is task):
                task.fail(cancelled("the controller asked for it"))

        self.call_soon(leave)

    def _remove(self, goes: Callable[[WaitingCall], bool]) -> list[WaitingCall]:
        gone = [call for call in self._calls if goes(call)]
        if gone:
            self._calls = [call for call in self._calls if not goes(call)]
        return gone


def shut_down_here() -> BridgeError:
    """The error for a queue that was shut down on this rank."""
    return BridgeError.of(ErrorCode.ABORTED, "the queue was shut down on this rank")
