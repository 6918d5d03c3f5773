"""The calls that wait at one end of a queue."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from ..errors import BridgeError, ErrorCode, Phase
from ..task import Task, cancelled


@dataclass(frozen=True, slots=True)
class WaitingCall:
    """A waiting call. `data`: the value that it writes; empty for one that reads."""

    task: Task
    data: bytes = b""


class Waiting:
    """The waiting calls in their order. One thread uses it."""

    def __init__(self) -> None:
        self._calls: list[WaitingCall] = []

    def __bool__(self) -> bool:
        return bool(self._calls)

    @property
    def due(self) -> float | None:
        """When the first call times out, by the monotonic clock."""
        return min((call.task.deadline for call in self._calls), default=None)

    def add(self, call: WaitingCall, leave: Callable[[], None]) -> None:
        """Adds a call, which is in admission. `leave`: called on any thread when the call is withdrawn."""
        if not call.task.done:
            self._calls.append(call)
            call.task.arrived(leave)

    def leave(self, task: Task) -> None:
        """Withdraws a call that still waits."""
        if self._remove(lambda call: call.task is task):
            task.fail(cancelled("the controller asked for it"))

    def next(self) -> WaitingCall | None:
        """Removes and returns the first call."""
        while self._calls:
            call = self._calls.pop(0)
            if call.task.enter(Phase.DATA):
                return call
        return None

    def expire(self, missing: Callable[[], BridgeError]) -> None:
        """Answers the calls that have timed out."""
        now = time.monotonic()
        for call in self._remove(lambda call: call.task.deadline <= now):
            call.task.fail(missing())

    def fail(self, error: BridgeError) -> None:
        """Answers all calls with an error."""
        for call in self._remove(lambda _: True):
            call.task.fail(error)

    def _remove(self, goes: Callable[[WaitingCall], bool]) -> list[WaitingCall]:
        gone = [call for call in self._calls if goes(call)]
        if gone:
            self._calls = [call for call in self._calls if not goes(call)]
        return gone


def shut_down_here() -> BridgeError:
    """The error for a queue that was shut down on this rank."""
    return BridgeError.of(ErrorCode.ABORTED, "the queue was shut down on this rank")


def internal(error: Exception) -> BridgeError:
    """The error for a fault of rankbridge."""
    return BridgeError.of(ErrorCode.INTERNAL, f"{type(error).__name__}: {error}", indefinite=True)
