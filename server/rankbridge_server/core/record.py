"""The record of a rank: its last operations, as they went."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Sequence
from typing import NamedTuple

from .errors import ErrorCode, Phase, Place
from .task import Task

_TEXT = 500
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
            failure.message[:_TEXT] if failure is not None else "",
            failure is not None and failure.indefinite,
        )


class Record:
    """Keeps the last `size` operations that have ended. Thread-safe.

    `ended`: how many have ended so far.
    """

    def __init__(self, size: int) -> None:
        self.ended = 0
        self._kept: deque[Recorded] = deque(maxlen=size)
        self._lock = threading.Lock()

    def add(self, task: Task) -> None:
        """Keeps a task that is done."""
        recorded = Recorded.of(task, time.monotonic())
        with self._lock:
            self._kept.append(recorded)
            self.ended += 1

    def entries(self) -> Sequence[Recorded]:
        """What is kept, in the order in which it ended."""
        with self._lock:
            return list(self._kept)
