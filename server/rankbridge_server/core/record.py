"""The record of a rank: its last operations, as they went."""

from __future__ import annotations

import itertools
import time
from collections.abc import Sequence
from typing import NamedTuple

from .errors import ErrorCode, Phase, Place
from .task import Task

_TEXT = 500
"""Characters of an error's text that are kept."""


class Recorded(NamedTuple):
    """An operation: how it was called, how far it has come, and how it ended.

    `called`, `announced`, `entered`, `done`: seconds of the monotonic clock; 0.0: it was not, or not yet. `code`: None:
    it ended well, or has not.
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
            task.phase,
            failure.code if failure is not None else None,
            failure.message[:_TEXT] if failure is not None else "",
            failure is not None and failure.indefinite,
        )


class Record:
    """Keeps the last `size` operations that have ended. Thread-safe, without a lock."""

    def __init__(self, size: int) -> None:
        self._ring: list[tuple[int, Recorded] | None] = [None] * size
        self._numbers = itertools.count()
        self._last = -1

    @property
    def ended(self) -> int:
        """How many operations have ended so far."""
        return self._last + 1

    def add(self, task: Task) -> None:
        """Keeps a task that is done."""
        number = next(self._numbers)
        if self._ring:
            self._ring[number % len(self._ring)] = number, Recorded.of(task, time.monotonic())
        self._last = number

    def entries(self) -> Sequence[Recorded]:
        """What is kept, in the order in which it ended."""
        return [entry for _, entry in sorted(filter(None, self._ring.copy()), key=lambda it: it[0])]
