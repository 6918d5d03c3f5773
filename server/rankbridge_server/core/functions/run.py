"""One run of a function on this rank, from its admission to its end."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from dataclasses import replace

from ..alarms import Alarms
from ..errors import BridgeError, ErrorCode, Phase, Raised
from ..gang_calls.messages import Release
from ..operations.outcome import Packed
from ..task import Task, cancelled, late
from .functions import Body, Functions
from .raised import function_failed, raised_by
from .reports import ReportBook

GRACE_S = 0.5
"""How long a function that was asked to end has for it, before its caller is answered."""
_LOOK_S = 0.01

# One for all ranks of a process. It starts its thread with the first run.
_ALARMS = Alarms("functions")

# How many forks lead from the first process to this one: cheaper than a system call for its pid.
_forks = 0


class Run:
    """A function that was called. `begin` runs it on the calling thread. Thread-safe.

    `cancelled`: it was asked to end. `begun`: it runs, or has run.
    `fail`: called when it has raised, or does not run, with the release of those members that may wait for it.
    `stuck`: called when it waits for a member that has failed, with that release: nothing else ends the wait.
    """

    def __init__(
        self,
        function: str,
        body: Body,
        task: Task,
        functions: Functions,
        reports: ReportBook,
        fail: Callable[[Release], None] = lambda release: None,
        stuck: Callable[[Release], None] = lambda release: None,
    ) -> None:
        self.function = function
        self.task = task
        self._reports = reports
        self.cancelled = False
        self.begun = False
        self._asked: ErrorCode | None = None
        self._was_released = False
        self._body = body
        self._functions = functions
        self._fail = fail
        self._stuck = stuck
        task.then(self._answered)

    def _answered(self, task: Task) -> None:
        # Whatever has answered it, as the end of the generation: a function that goes on is to end.
        self.cancelled = True
        self._reports.close(task.place.operation_id)

    def report(self, value: Packed) -> None:
        """Adds a report."""
        self._reports.add(self.task.place.operation_id, value)

    def queue(self) -> None:
        """Notes that it was admitted, and waits for those before it: it can still be withdrawn."""
        self.task.arrived(lambda: self.task.fail(cancelled("its controller asked for it")))

    def begin(self) -> None:
        """Calls the function and answers the task. Whoever calls it does so in the order of the group's functions."""
        task, forks = self.task, _forks
        if not task.enter(Phase.DATA):
            # Only now: what it has begun in torch.distributed before is counted.
            code = task.error.failure.code if task.error is not None else None
            asked = code if code in (ErrorCode.CANCELLED, ErrorCode.DEADLINE_EXCEEDED) else None
            self._release_others(f"rank {task.place.rank} did not call {self.function!r}", None, asked)
            return
        self.begun = True
        task.thread = threading.get_ident()
        task.arrived(self.cancel)
        _ALARMS.set(self, task.deadline, self._late)
        try:
            commit = self._body(self)
        except BaseException as error:
            _leave_child(forks)
            self._ended(error)
        else:
            _leave_child(forks)
            task.commit(commit)
        finally:
            _ALARMS.cancel(self)

    def cancel(self) -> None:
        """Asks the function to end; its caller is answered after a grace, whether it has ended or not."""
        self._ask(ErrorCode.CANCELLED)
        error = BridgeError.of(
            ErrorCode.CANCELLED,
            f"function {self.function!r} was asked to end, and has not: it goes on",
            indefinite=True,
        )
        _ALARMS.set(self, time.monotonic() + GRACE_S, lambda: self.task.fail(error))

    def release(self, release: Release) -> None:
        """Acts on the failure of another member, or on the end of the whole call."""
        if release.rank is None and self.begun:
            self.cancel()
        elif not self.begun:
            self._was_released = True
            self.task.fail(cancelled(release.reason) if release.rank is None else self.released(release))
        else:
            self._look(release)

    def released(self, release: Release) -> BridgeError:
        """The error of a member that another one has stopped by its failure, or its end in a withdrawn call."""
        code = release.code or ErrorCode.FUNCTION_FAILED
        return BridgeError.of(code, release.reason, indefinite=self.begun, raised=release.raised)

    def _look(self, release: Release) -> None:
        """Looks, until the function has ended, whether it waits for the member that has failed."""
        if self.task.done:
            return
        if self._functions.waits(self, release.begun):
            if release.code is not None:
                self.task.fail(self.released(release))
            self._stuck(release)
        else:
            _ALARMS.set((self, "waits"), time.monotonic() + _LOOK_S, lambda: self._look(release))

    def _late(self) -> None:
        """Acts on the deadline."""
        self._ask(ErrorCode.DEADLINE_EXCEEDED)
        error = late(f"function {self.function!r} was asked to end, and has not: it goes on")
        _ALARMS.set(self, time.monotonic() + GRACE_S, lambda: self.task.fail(error))

    def _ask(self, code: ErrorCode) -> None:
        """Asks the function to end. It counts what has asked first."""
        self._asked = self._asked or code
        self.cancelled = True

    def _ended(self, error: BaseException) -> None:
        rank = self.task.place.rank
        if isinstance(error, BridgeError):
            # The bridge's own, as of a result for which there is no room: it says what it is.
            failed, raised = BridgeError(replace(error.failure, indefinite=True)), error.failure.raised
            what = str(error)
        else:
            raised = raised_by(error, rank)
            failed, what = function_failed(self.function, raised), str(raised)
        asked = self._asked if failed.failure.code is ErrorCode.CANCELLED else None
        if asked is ErrorCode.DEADLINE_EXCEEDED:
            failed = late(f"function {self.function!r} was asked to end, and has ended")
        self.task.fail(failed)
        how = "has ended" if asked else "failed"
        self._release_others(f"function {self.function!r} {how} on rank {rank}: {what}", raised, asked)

    def _release_others(self, reason: str, raised: Raised | None, code: ErrorCode | None) -> None:
        place = self.task.place
        if not self._was_released:
            begun = self._functions.begun()
            self._fail(Release(place.group, place.operation_id, place.rank, reason, raised, begun, code))


def _leave_child(forks: int) -> None:
    """Ends a process that the function has forked and that has come back from it: it shares the rank's connections."""
    if _forks != forks:
        os._exit(0)


def _count_fork() -> None:
    global _forks
    _forks += 1


os.register_at_fork(after_in_child=_count_fork)
