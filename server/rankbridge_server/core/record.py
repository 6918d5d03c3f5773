"""The record of a rank: its last operations, as they went."""

from __future__ import annotations

import secrets
import threading
import time
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from typing import NamedTuple

from .errors import ErrorCode, Phase, Place, exhausted
from .task import Task

_TEXT = 500
"""Characters of an error's text that are kept."""
MAX_WATCHES = 64


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


class Growth(NamedTuple):
    """Operations that have ended after a number. `ended`: the number of the last; `lost`: those between not kept."""

    operations: Sequence[Recorded]
    ended: int
    lost: int


class Record:
    """Keeps the last `size` operations that have ended. Thread-safe.

    `id`: unique among the records of all processes, and not 0. `ended`: how many have ended so far.
    """

    def __init__(self, size: int) -> None:
        self.id = 1 + secrets.randbelow(2**63 - 1)
        self.ended = 0
        self._kept: deque[Recorded] = deque(maxlen=size)
        self._lock = threading.Lock()
        self._watches: set[RecordWatch] = set()
        self._closed = False

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

    def after(self, number: int, most: int) -> Growth:
        """The first `most` operations that have ended after the first `number`, as far as they are kept."""
        with self._lock:
            new = min(self.ended - number, len(self._kept))
            # From the end: a watcher that keeps up pays for what is new alone.
            newest = list(islice(reversed(self._kept), new))
            ended = self.ended
        newest.reverse()
        first = newest[:most]
        return Growth(first, ended - (new - len(first)), ended - number - new)

    @contextmanager
    def watch(self, after: int | None, record: int, last: int = 0) -> Iterator[RecordWatch]:
        """A watch of what ends after the operation number `after`; None: from now on, and the `last` before.

        A number of another record, or of a future operation, counts as 0. Raises RESOURCE_EXHAUSTED.
        """
        with self._lock:
            if len(self._watches) >= MAX_WATCHES:
                got = str(len(self._watches) + 1)
                raise exhausted("too many watchers of this rank's record", most=str(MAX_WATCHES), got=got)
            if after is None:
                after = self.ended - min(last, len(self._kept))
            elif after > self.ended or record not in (0, self.id):
                after = 0
            watch = RecordWatch(self, after)
            if self._closed:
                watch.close()
            self._watches.add(watch)
        try:
            yield watch
        finally:
            with self._lock:
                self._watches.discard(watch)

    def close(self) -> None:
        """Ends every watch."""
        with self._lock:
            self._closed = True
            watches = list(self._watches)
        for it in watches:
            it.close()


class RecordWatch:
    """One watcher's place in a record. One thread reads; any closes."""

    def __init__(self, record: Record, after: int) -> None:
        self._record = record
        self._after = after
        self._closed = threading.Event()

    def next(self, most: int) -> Growth:
        """What has ended since it was asked before, at most so many; it waits for nothing."""
        growth = self._record.after(self._after, most)
        self._after = growth.ended
        return growth

    def wait(self, seconds: float) -> bool:
        """Waits. Gives whether the watch goes on."""
        return not self._closed.wait(seconds)

    def close(self) -> None:
        """Ends the watch."""
        self._closed.set()
