"""The threads on which a group's operations run, in order."""

from __future__ import annotations

import threading
from collections.abc import Callable
from queue import SimpleQueue


class Lane:
    """Runs jobs one after another, in the order in which they were added. Jobs must not raise."""

    def __init__(self, name: str) -> None:
        self._jobs: SimpleQueue[Callable[[], None] | None] = SimpleQueue()
        self._thread = threading.Thread(target=self._run, name=f"lane:{name}", daemon=True)
        self._thread.start()

    def add(self, job: Callable[[], None]) -> None:
        """Run `job` after all jobs added before."""
        self._jobs.put(job)

    def close(self) -> None:
        """End the thread after the jobs that were added so far. Does not wait."""
        self._jobs.put(None)

    def join(self, timeout: float) -> None:
        """Wait until it has ended, at most `timeout` seconds."""
        self._thread.join(timeout)

    def _run(self) -> None:
        while (job := self._jobs.get()) is not None:
            job()


class Courier:
    """A lane for what is sent and received, beside the group's own, begun with its first job. Thread-safe."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._lock = threading.Lock()
        self._lane: Lane | None = None
        self._closed = False

    def add(self, job: Callable[[], None]) -> bool:
        """Run `job` after all jobs added before; False when it was closed."""
        with self._lock:
            if self._closed:
                return False
            if self._lane is None:
                self._lane = Lane(f"{self._name}:courier")
            self._lane.add(job)
            return True

    def close(self) -> None:
        """End after the jobs that were added so far. Does not wait."""
        with self._lock:
            self._closed = True
            if self._lane is not None:
                self._lane.close()

    def join(self, timeout: float) -> None:
        """Wait until it has ended, at most `timeout` seconds."""
        if self._lane is not None:
            self._lane.join(timeout)
