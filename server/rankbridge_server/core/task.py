"""One operation on its way through a rank."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, replace

from .errors import BridgeError, ErrorCode, Failure, Phase, Place
from .operations.outcome import Outcome

# How much longer than its timeout a call waits for a verdict that is on its way from the leader.
VERDICT_GRACE = 1.0


@dataclass(frozen=True, slots=True)
class Call:
    """What a controller says with every operation; the core's form of `rankbridge.v1.Call`.

    `timeout` in seconds, from arrival to answer. `generation` 0: the current one. `first`: the group's lane itself
    submits it, and does it next.
    """

    group: str
    operation_id: str
    timeout: float
    session_id: str
    generation: int
    first: bool = False


class Task:
    """An accepted operation: its phase, its deadline, and what it came to. Thread-safe.

    `agreement`: it is done when it is admitted; there is no more to it. Thousands are remembered when they are done,
    and each is small then.
    """

    __slots__ = (
        "_callbacks",
        "_changed",
        "_error",
        "_leave",
        "_leaving",
        "_lock",
        "_outcome",
        "_phase",
        "agreement",
        "deadline",
        "done",
        "place",
        "session_id",
    )

    def __init__(self, place: Place, timeout: float, session_id: str, *, agreement: bool = False) -> None:
        self.place = place
        self.session_id = session_id
        self.agreement = agreement
        self.deadline = time.monotonic() + timeout
        self.done = False
        self._outcome: Outcome = None
        self._error: BridgeError | None = None
        self._lock = threading.RLock()
        # Only once somebody waits.
        self._changed: threading.Condition | None = None
        self._callbacks: list[Callable[[Task], None]] = []
        self._phase = Phase.CHECK
        self._leaving = False
        self._leave: Callable[[], None] | None = None

    @property
    def remaining(self) -> float:
        """Seconds until the deadline; negative after it."""
        return self.deadline - time.monotonic()

    @property
    def phase(self) -> Phase:
        """CHECK while it is queued, then ADMISSION, then DATA."""
        return self._phase

    @property
    def error(self) -> BridgeError | None:
        """How it failed; None: it did not, or is not done."""
        return self._error

    def then(self, callback: Callable[[Task], None]) -> None:
        """Calls `callback` when the task is done, before waiters wake; at once if it is done. It must not raise."""
        with self._lock:
            if not self.done:
                self._callbacks.append(callback)
                return
        callback(self)

    def enter(self, phase: Phase) -> bool:
        """Go on to the next phase; False when the task was answered and must not go on."""
        with self._lock:
            if self.done:
                return False
            self._phase = phase
            self._leave = None
            self._notify()
            return True

    def arrived(self, leave: Callable[[], None]) -> None:
        """The leader has been told; `leave` asks it to let this rank go again."""
        with self._lock:
            self._leave = leave
            leaving = self._leaving
        if leaving:
            leave()

    def commit(self, commit: Callable[[], Outcome]) -> None:
        """Answer with what `commit` gives or raises; it is not called if the task was answered already."""
        with self._lock:
            if self.done:
                return
            try:
                self._outcome = commit()
            except BridgeError as error:
                # The data has moved: the other members have their results.
                self._fail(BridgeError(replace(error.failure, indefinite=True)))
            else:
                self._settle()

    def fail(self, error: BridgeError) -> None:
        """Answer with an error, unless it was answered already."""
        with self._lock:
            self._fail(error)

    def abort(self, error: BridgeError) -> None:
        """Answer with an error, and leave if the leader has been told."""
        with self._lock:
            if self.done or self._phase is Phase.DATA:
                return
            self._fail(error)
            self._leaving = True
            leave = self._leave
        if leave is not None:
            leave()

    def lose(self, end: Failure) -> None:
        """Answer with the end of the generation."""
        with self._lock:
            self._fail(BridgeError(replace(end, indefinite=self._phase is not Phase.CHECK)))

    def cancel(self, why: str) -> None:
        """Withdraw the task if it has not been admitted. Does not wait for the leader's word."""
        with self._lock:
            if self._phase is Phase.CHECK:
                self._fail(cancelled(why))
                return
            if self.done or self._phase is not Phase.ADMISSION:
                return
            self._leaving = True
            leave = self._leave
        if leave is not None:
            leave()

    def cancelled(self) -> bool:
        """Whether a cancel took effect, as soon as that is known: no rank does it, also when another has refused it."""
        self._wait_for(lambda: self.done or self._phase is Phase.DATA, VERDICT_GRACE)
        if self._error is None:
            return False
        failure = self._error.failure
        return failure.code is ErrorCode.CANCELLED or (
            failure.phase is Phase.CHECK and not failure.indefinite
        )

    def wait(self, patience: float = math.inf) -> Outcome:
        """The outcome, at the latest when the deadline has passed, or `patience` seconds. Raises BridgeError.

        A caller that repeats the operation's id may be less patient than the first, and withdraws nothing.
        """
        if patience < self.remaining:
            return self.outcome(patience)
        if not self._await(self.remaining):
            self._await(self.expire())
        return self.outcome()

    def expire(self) -> float:
        """The deadline has passed: what is still queued is withdrawn. Gives how many seconds a verdict may still take.

        The leader rules when the time is over, and the verdict says more than the clock does.
        """
        with self._lock:
            if self._phase is Phase.CHECK:
                self._fail(_late("it was queued behind others, and was withdrawn", indefinite=False))
            return VERDICT_GRACE if self._phase is Phase.ADMISSION and not self.done else 0.0

    def outcome(self, timeout: float = 0.0) -> Outcome:
        """The outcome, if it comes within `timeout` seconds. Raises it, or DEADLINE_EXCEEDED."""
        if not self._await(timeout):
            error = _late("the operation goes on and may yet complete", indefinite=True)
            raise error.at(self.place, self._phase)
        if self._error is not None:
            # Raised anew for each who asks: what one does with its traceback is not another's.
            raise BridgeError(self._error.failure) from self._error
        return self._outcome

    def _fail(self, error: BridgeError) -> None:
        if not self.done:
            self._error = error.at(self.place, self._phase)
            self._settle()

    def _settle(self) -> None:
        """Called with the lock held, so that callbacks run before waiters wake."""
        self.done = True
        callbacks, self._callbacks = self._callbacks, []
        self._leave = None
        try:
            for callback in callbacks:
                callback(self)
        finally:
            self._notify()

    def _notify(self) -> None:
        if self._changed is not None:
            self._changed.notify_all()

    def _await(self, timeout: float) -> bool:
        return self.done or self._wait_for(lambda: self.done, timeout)

    def _wait_for(self, predicate: Callable[[], bool], timeout: float) -> bool:
        with self._lock:
            if self._changed is None:
                self._changed = threading.Condition(self._lock)
            return self._changed.wait_for(predicate, max(0.0, timeout))


def cancelled(why: str) -> BridgeError:
    """An operation that was withdrawn before any rank did anything."""
    return BridgeError.of(ErrorCode.CANCELLED, f"it was withdrawn before it was admitted: {why}")


def _late(what: str, *, indefinite: bool) -> BridgeError:
    return BridgeError.of(ErrorCode.DEADLINE_EXCEEDED, f"the timeout passed: {what}", indefinite=indefinite)


def failure_of(error: BaseException) -> Failure:
    """The failure of any exception; those that are not ours are faults of rankbridge."""
    if isinstance(error, BridgeError):
        return error.failure
    return Failure(code=ErrorCode.INTERNAL, message=f"{type(error).__name__}: {error}", indefinite=True)
