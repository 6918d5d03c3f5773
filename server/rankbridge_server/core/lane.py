"""The one thread on which a group's operations run, in order."""

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

    def _run(self) -> None:
        while (job := self._jobs.get()) is not None:
            job()
