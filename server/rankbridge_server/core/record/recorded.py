"""An operation in a rank's record."""

from __future__ import annotations

from typing import NamedTuple

from ..errors import ErrorCode, Phase, Place
from ..task import Task

MAX_MESSAGE = 500
"""Characters of an error's text that are kept."""


class Recorded(NamedTuple):
    """An operation: how it was called, how far it has come, and how it ended.

    `called`, `announced`, `entered`, `done`: seconds of the monotonic clock; 0.0: it was not, or not yet. `sequence`:
    as of `Task`. `code`: None: it ended well, or has not.
    """

    place: Place
    session_id: str
    contract: str
    site: str
    function: str
    called: float
    announced: float
    entered: float
    done: float
    sequence: int
    phase: Phase
    code: ErrorCode | None
    message: str
    indefinite: bool

    @classmethod
    def of(cls, task: Task, done: float) -> Recorded:
        """What a task is now."""
        failure = task.error.failure if task.error is not None else None
        return cls(
            task.place,
            task.session_id,
            task.contract,
            task.site,
            task.function,
            task.began,
            task.announced,
            task.entered,
            done,
            task.sequence,
            task.phase,
            failure.code if failure is not None else None,
            failure.message[:MAX_MESSAGE] if failure is not None else "",
            failure is not None and failure.indefinite,
        )
