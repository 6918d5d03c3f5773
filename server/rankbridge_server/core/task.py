"""One operation on its way through a rank."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, InvalidStateError
from concurrent.futures import TimeoutError as FutureTimeoutError
from dataclasses import dataclass, replace

from .errors import BridgeError, ErrorCode, Failure, Phase, Place
from .group import GroupView
from .refs import Ref

# How much longer than its timeout a call waits for a verdict that is on its way from the leader.
VERDICT_GRACE = 1.0

Outcome = Ref | GroupView | None


@dataclass(frozen=True, slots=True)
class Call:
    """What a controller says with every operation; the core's form of `rankbridge.v1.Call`.

    `timeout` in seconds, from arrival to answer. `generation` 0: the current one.
    """

    group: str
    operation_id: str
    timeout: float
    session_id: str
    generation: int


class Task:
    """An accepted operation: its phase, its deadline, and the future that answers its caller."""

    def __init__(self, place: Place, timeout: float) -> None:
        self.place = place
        self.deadline = time.monotonic() + timeout
        self.future: Future[Outcome] = Future()
        self._lock = threading.Lock()
        self._phase = Phase.CHECK
        self._withdrawn = False

    @property
    def remaining(self) -> float:
        """Seconds until the deadline; negative after it."""
        return self.deadline - time.monotonic()

    @property
    def phase(self) -> Phase:
        """CHECK while it is queued, then ADMISSION, then DATA."""
        return self._phase

    def enter(self, phase: Phase) -> bool:
        """Go on to the next phase; False when the task was withdrawn and must not go on."""
        with self._lock:
            if self._withdrawn:
                return False
            self._phase = phase
            return True

    def succeed(self, outcome: Outcome) -> None:
        """Answer with a value, unless it was answered already."""
        self._answer(lambda: self.future.set_result(outcome))

    def fail(self, error: BridgeError) -> None:
        """Answer with an error, unless it was answered already."""
        located = error.at(self.place, self._phase)
        self._answer(lambda: self.future.set_exception(located))

    def lose(self, end: Failure) -> None:
        """Answer with the end of the generation."""
        entered = self._phase is not Phase.CHECK
        self.fail(BridgeError(replace(end, indefinite=entered)))

    def wait(self) -> Outcome:
        """The outcome, at the latest when the deadline has passed. Raises BridgeError."""
        try:
            return self.future.result(max(0.0, self.remaining))
        except FutureTimeoutError:
            pass
        if not self._withdraw():
            # The leader rules when the time is over, and the verdict says more than the clock does.
            grace = VERDICT_GRACE if self._phase is Phase.ADMISSION else 0.0
            try:
                return self.future.result(grace)
            except FutureTimeoutError:
                pass
        raise self._late().at(self.place, self._phase)

    def _withdraw(self) -> bool:
        with self._lock:
            if self._phase is Phase.CHECK:
                self._withdrawn = True
            return self._withdrawn

    def _late(self) -> BridgeError:
        if self._withdrawn:
            message = "the timeout passed while the call was queued behind others; it was withdrawn"
        else:
            message = "the timeout passed while the operation ran; it may yet complete"
        return BridgeError.of(ErrorCode.DEADLINE_EXCEEDED, message, indefinite=not self._withdrawn)

    @staticmethod
    def _answer(answer: Callable[[], None]) -> None:
        try:
            answer()
        except InvalidStateError:
            # Answered before: a lost generation answers its tasks while their lanes may still be at work.
            return


def failure_of(error: BaseException) -> Failure:
    """The failure of any exception; those that are not ours are faults of rankbridge."""
    if isinstance(error, BridgeError):
        return error.failure
    return Failure(code=ErrorCode.INTERNAL, message=f"{type(error).__name__}: {error}", indefinite=True)
