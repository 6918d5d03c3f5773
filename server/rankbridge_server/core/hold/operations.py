"""Holding a rank at the operations of controllers, on their group's lane."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from ..caller import Caller
from ..errors import BridgeError, ErrorCode
from .breakpoint import Ended, SeenCall
from .holds import Action, Held, Holds

if TYPE_CHECKING:
    from ..operations.operation import Job


def hold_before(holds: Holds, job: Job, contract: str) -> None:
    """Holds an operation that is about to be announced, until it is let go or answered.

    Answers it, if it is not to be done.
    """
    task = job.task

    def begin(held: Held) -> None:
        task.held = True
        task.then(lambda done: holds.let_go(held))

    seen = _seen(holds, job, contract, job.membership.sequence + 1)
    release = holds.before(seen, begin, max(0.0, task.remaining))
    if task.held and task.remaining <= 0:
        task.expire()
    task.held = False
    if release.action in (Action.SKIP, Action.FAIL):
        is_skipped = release.action is Action.SKIP
        said = f": {release.message}" if release.message else ""
        what = "skipped" if is_skipped else "failed"
        code = ErrorCode.CANCELLED if is_skipped else ErrorCode.ABORTED
        task.fail(BridgeError.of(code, f"the operation was held at a breakpoint, and {what} there{said}"))


def hold_after(holds: Holds, job: Job) -> None:
    """Holds the lane after an operation that has been answered, until it is let go."""
    task = job.task
    code = task.error.failure.code if task.error is not None else None
    # What its members did not agree on has no number.
    number = 0 if code is not None else job.membership.sequence
    seen = _seen(holds, job, task.contract, number)
    holds.after(seen, Ended(time.monotonic() - task.began, code))


def _seen(holds: Holds, job: Job, contract: str, number: int) -> SeenCall:
    task = job.task
    return SeenCall(
        caller=Caller.CONTROLLER,
        operation=job.operation,
        group=job.group.name,
        number=number,
        contract=contract,
        site=task.site,
        function=task.function,
        operation_id=task.place.operation_id,
        inputs=lambda: holds.inputs.of(task),
    )
