"""The calls that wait at one end of a queue."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from ..errors import BridgeError, ErrorCode, Phase
from ..task import Task, cancelled


@dataclass(frozen=True, slots=True)
class WaitingCall:
    """One of them. `data`: what it writes; nothing for one that reads."""

    task: Task
    data: bytes = b""


class Waiting:
    """In the order in which they came. Of one thread."""

    def __init__(self) -> None:
        self._calls: list[WaitingCall] = []

    def __bool__(self) -> bool:
        return bool(self._calls)

    @property
    def due(self) -> float | None:
        """When the first of them gives up, by the monotonic clock."""
        return min((call.task.deadline for call in self._calls), default=None)

    def add(self, call: WaitingCall, leave: Callable[[], None]) -> None:
        """Let a call wait, which is in admission; `leave` is called, by any thread, when it wants to go."""
        if not call.task.done:
            self._calls.append(call)
            call.task.arrived(leave)

    def leave(self, task: Task) -> None:
        """Let a call go that is still waiting."""
        if self._remove(lambda call: call.task is task):
            task.fail(cancelled("the controller asked for it"))

    def next(self) -> WaitingCall | None:
        """The first of them. It waits no longer."""
        while self._calls:
            call = self._calls.pop(0)
            if call.task.enter(Phase.DATA):
                return call
        return None

    def expire(self, missing: Callable[[], BridgeError]) -> None:
        """Answer those whose time is over."""
        now = time.monotonic()
        for call in self._remove(lambda call: call.task.deadline <= now):
            call.task.fail(missing())

    def fail(self, error: BridgeError) -> None:
        """Answer all."""
        for call in self._remove(lambda _: True):
            call.task.fail(error)

    def _remove(self, goes: Callable[[WaitingCall], bool]) -> list[WaitingCall]:
        gone = [call for call in self._calls if goes(call)]
        if gone:
            self._calls = [call for call in self._calls if not goes(call)]
        return gone


def shut_down_here() -> BridgeError:
    """The queue was ended on this rank."""
    return BridgeError.of(ErrorCode.ABORTED, "the queue was shut down on this rank")


def internal(error: Exception) -> BridgeError:
    """A fault of rankbridge."""
    return BridgeError.of(ErrorCode.INTERNAL, f"{type(error).__name__}: {error}", indefinite=True)
