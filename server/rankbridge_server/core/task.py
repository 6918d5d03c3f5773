"""The task of one operation on a rank."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

from .caller import Caller
from .errors import BridgeError, ErrorCode, Failure, Phase, Place
from .operations.outcome import Outcome

# How much longer than its timeout a call waits for the leader's verdict.
VERDICT_GRACE = 1.0

GOES_ON = "the operation goes on and may yet complete"


class Call(NamedTuple):
    """The part that every operation's request has; the core's form of `rankbridge.v1.Call`.

    `timeout`: seconds from arrival to answer. `generation`: 0: the current one. `first`: the group's lane itself
    submits the operation, and runs it next. `traceparent`: the caller's place in a trace; empty: none. `site`: the line
    of code that has made the call; empty: not said.
    """

    group: str
    operation_id: str
    timeout: float
    session_id: str
    generation: int
    first: bool = False
    traceparent: str = ""
    site: str = ""


class Task:
    """An accepted operation: its phase, its deadline, and its outcome. Thread-safe.

    `agreement`: the operation is done as soon as it is admitted. `began`: when it was accepted; `announced`: when the
    leader was told; `entered`: when it entered the backend: seconds of the monotonic clock, 0.0 if it was not.
    `contract`: what its members agree on; empty: nothing, or not yet said. `sequence`: GO verdicts of its group before
    it; -1: it was not announced. `site`: as of `Call`. `function`: name of the user's function that it calls; empty:
    none. `thread`: the one that runs it, by Python's number; 0: none does. `held`: it waits at a breakpoint. `note`:
    called, under the task's lock, when it enters a phase; None: nothing is. `slot`: where the rank's record has it
    while it has not ended; 0: nowhere.
    `waited_for`: of each of its admissions, on the group's leader, the rank that came last, and the seconds that all
    others have waited for it.
    A rank keeps thousands of tasks that are done, so a task is small.
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
        "_told",
        "agreement",
        "announced",
        "began",
        "contract",
        "deadline",
        "done",
        "entered",
        "function",
        "held",
        "note",
        "place",
        "sequence",
        "session_id",
        "site",
        "slot",
        "thread",
        "waited_for",
    )

    # As of `record.recorded.Entry`.
    caller = Caller.CONTROLLER
    number = 0

    def __init__(
        self, place: Place, timeout: float, session_id: str, *, agreement: bool = False, site: str = ""
    ) -> None:
        self.place = place
        self.session_id = session_id
        self.site = site
        self.function = ""
        self.thread = 0
        self.agreement = agreement
        self.contract = ""
        self.began = time.monotonic()
        self.deadline = self.began + timeout
        self.announced = 0.0
        self.sequence = -1
        self.entered = 0.0
        self.waited_for: tuple[tuple[int, float], ...] = ()
        self.done = False
        self.held = False
        self.note: Callable[[Task], None] | None = None
        self.slot = 0
        self._outcome: Outcome = None
        self._error: BridgeError | None = None
        self._lock = threading.RLock()
        # Only once somebody waits.
        self._changed: threading.Condition | None = None
        self._callbacks: list[Callable[[Task], None]] = []
        # Whether the callbacks have run, for which all but they themselves wait.
        self._told = False
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
        """The error with which the task has failed; None: it has not, or is not done."""
        return self._error

    def then(self, callback: Callable[[Task], None]) -> None:
        """Calls `callback` when the task is done, before waiters wake; at once if it is done. It must not raise."""
        with self._lock:
            if not self.done:
                self._callbacks.append(callback)
                return
        callback(self)

    def enter(self, phase: Phase) -> bool:
        """Enters the next phase. Returns False when the task was answered and must not go on."""
        with self._lock:
            if self.done:
                return False
            if phase is Phase.DATA:
                self.entered = self.entered or time.monotonic()
            elif not self.announced:
                self.announced = time.monotonic()
            self._phase = phase
            self._leave = None
            if self.note is not None:
                self.note(self)
            self._notify()
            return True

    def note_now(self) -> None:
        """Calls `note`, unless the task is done."""
        with self._lock:
            if not self.done and self.note is not None:
                self.note(self)

    def arrived(self, leave: Callable[[], None]) -> None:
        """Notes how the task is withdrawn in this phase. `leave` asks for it: the leader, or the function that runs."""
        with self._lock:
            self._leave = leave
            leaving = self._leaving
        if leaving:
            leave()

    def commit(self, commit: Callable[[], Outcome]) -> None:
        """Answers with what `commit` returns or raises. Does not call it if the task was answered already."""
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
        """Answers with an error, unless the task was answered already."""
        with self._lock:
            self._fail(error)

    def abort(self, error: BridgeError) -> None:
        """Answers with an error, and withdraws the arrival if the leader has it."""
        with self._lock:
            if self.done or self._phase is Phase.DATA:
                return
            self._fail(error)
            self._leaving = True
            leave = self._leave
        if leave is not None:
            leave()

    def lose(self, end: Failure) -> None:
        """Answers with the error that has ended the generation."""
        with self._lock:
            self._fail(BridgeError(replace(end, indefinite=self._phase is not Phase.CHECK)))

    def cancel(self, why: str) -> None:
        """Withdraws the task if it was not admitted yet. Does not wait for the leader's verdict.

        A function that runs already is asked to end.
        """
        with self._lock:
            if self._phase is Phase.CHECK:
                self._fail(cancelled(why))
                return
            if self.done or (self._phase is Phase.DATA and self._leave is None):
                return
            self._leaving = True
            leave = self._leave
        if leave is not None:
            leave()

    def cancelled(self) -> bool:
        """Waits until it is known whether a cancel took effect: no rank does the operation. A refusal counts, too."""
        self._wait_for(lambda: self.done or self._phase is Phase.DATA, VERDICT_GRACE)
        if self._error is None:
            return False
        failure = self._error.failure
        return failure.code is ErrorCode.CANCELLED or (
            failure.phase is Phase.CHECK and not failure.indefinite
        )

    def wait(self, patience: float = math.inf) -> Outcome:
        """Waits for the outcome until the deadline, or for `patience` seconds. Raises BridgeError.

        A caller that repeats an operation id may have a shorter timeout than the first; its end withdraws nothing.
        """
        if patience < self.remaining:
            return self.outcome(patience)
        if not self._await(self.remaining):
            self._await(self.expire())
        return self.outcome()

    def expire(self) -> float:
        """Withdraws a queued task whose deadline has passed. Returns the seconds that a verdict may still take.

        The leader rules at the deadline, and its verdict says more than a timeout.
        """
        with self._lock:
            if self._phase is Phase.CHECK:
                where = "held at a breakpoint" if self.held else "queued behind others"
                what = f"the operation was {where}, and was withdrawn"
                self._fail(late(what, indefinite=False))
            return VERDICT_GRACE if self._phase is Phase.ADMISSION and not self.done else 0.0

    def outcome(self, timeout: float = 0.0, abandoned: Callable[[], bool] = lambda: False) -> Outcome:
        """Returns or raises the outcome if it comes within `timeout` seconds. Raises DEADLINE_EXCEEDED otherwise.

        Waits no longer when `abandoned` is true at a `wake`.
        """
        if not self._told:
            self._wait_for(lambda: self.done or abandoned(), timeout)
        if not self.done:
            raise late(GOES_ON).at(self.place, self._phase)
        if self._error is not None:
            # A new exception for each caller, because raising one changes its traceback.
            raise BridgeError(self._error.failure) from self._error
        return self._outcome

    def wake(self) -> None:
        """Lets those who wait see whether they are abandoned."""
        with self._lock:
            self._notify()

    def _fail(self, error: BridgeError) -> None:
        if not self.done:
            self._error = error.at(self.place, self._phase)
            self._settle()

    def _settle(self) -> None:
        """Runs the callbacks before waiters wake. The caller holds the lock."""
        self.done = True
        callbacks, self._callbacks = self._callbacks, []
        self._leave = None
        try:
            for callback in callbacks:
                callback(self)
        finally:
            self._told = True
            self._notify()

    def _notify(self) -> None:
        if self._changed is not None:
            self._changed.notify_all()

    def _await(self, timeout: float) -> bool:
        return self._told or self._wait_for(lambda: self.done, timeout)

    def _wait_for(self, predicate: Callable[[], bool], timeout: float) -> bool:
        with self._lock:
            if self._changed is None:
                self._changed = threading.Condition(self._lock)
            return self._changed.wait_for(predicate, max(0.0, timeout))


def cancelled(why: str) -> BridgeError:
    """The error for an operation that was withdrawn before any rank did anything."""
    return BridgeError.of(ErrorCode.CANCELLED, f"the operation was withdrawn before it was admitted: {why}")


def late(what: str, *, indefinite: bool = True) -> BridgeError:
    """The error for an outcome that has not come in time. `what`: what has happened meanwhile."""
    return BridgeError.of(
        ErrorCode.DEADLINE_EXCEEDED, f"the timeout has passed: {what}", indefinite=indefinite
    )


def failure_of(error: BaseException) -> Failure:
    """The failure of any exception. An exception that is no BridgeError is a fault of rankbridge."""
    if isinstance(error, BridgeError):
        return error.failure
    return Failure(code=ErrorCode.INTERNAL, message=f"{type(error).__name__}: {error}", indefinite=True)
