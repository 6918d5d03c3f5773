"""The threads that run a group's operations, in order."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from queue import SimpleQueue

from . import engine_threads
from .links import GroupLinks


class Lane:
    """A thread that runs jobs in the order in which they were added. Jobs must not raise."""

    def __init__(self, name: str) -> None:
        self._jobs: SimpleQueue[Callable[[], None] | None] = SimpleQueue()
        self._first: deque[Callable[[], None]] = deque()
        self._links: GroupLinks | None = None
        self._thread = engine_threads.start(f"lane:{name}", self._run)

    def wait_with(self, links: GroupLinks) -> None:
        """Sets the links that the lane reads while it waits for jobs. Called before the first job."""
        self._links = links
        self.add(lambda: None)

    def add(self, job: Callable[[], None], first: bool = False) -> None:
        """Runs `job` after all jobs added before. With `first`, right after the job of this lane that calls this."""
        if first:
            self._first.append(job)
        else:
            self._put(job)

    def close(self) -> None:
        """Ends the thread after the jobs that were added so far. Does not wait."""
        self._put(None)

    def join(self, timeout: float) -> None:
        """Waits until the thread has ended, at most `timeout` seconds."""
        self._thread.join(timeout)

    def _put(self, job: Callable[[], None] | None) -> None:
        self._jobs.put(job)
        # The lane itself may reset the attribute meanwhile.
        links = self._links
        if links is not None:
            links.wake_lane()

    def _run(self) -> None:
        while (job := self._next()) is not None:
            job()

    def _next(self) -> Callable[[], None] | None:
        if self._first:
            return self._first.popleft()
        if self._links is not None and self._jobs.empty() and not self._links.wait(self._has_job):
            self._links = None
        return self._jobs.get()

    def _has_job(self) -> bool:
        return not self._jobs.empty()


class Courier:
    """A lane beside a group's own: of sends and receives, or of functions. Its thread starts with the first job.

    Thread-safe.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._lock = threading.Lock()
        self._lane: Lane | None = None
        self._closed = False

    def add(self, job: Callable[[], None]) -> bool:
        """Runs `job` after all jobs added before. Returns False when the courier was closed."""
        with self._lock:
            if self._closed:
                return False
            if self._lane is None:
                self._lane = Lane(self._name)
            self._lane.add(job)
            return True

    def close(self) -> None:
        """Ends after the jobs that were added so far. Does not wait."""
        with self._lock:
            self._closed = True
            if self._lane is not None:
                self._lane.close()

    def join(self, timeout: float) -> None:
        """Waits until the thread has ended, at most `timeout` seconds."""
        if self._lane is not None:
            self._lane.join(timeout)
