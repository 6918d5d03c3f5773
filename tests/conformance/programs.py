"""What each rank of a case does by itself: one thread for each, as one process for each did when it was recorded."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import copy_context
from typing import TypeVar

T = TypeVar("T")

PATIENCE_S = 120.0
"""Longest time of all programs of a case. It bounds hangs, and nothing else."""


class Pace:
    """Lets a rank wait until no other one does anything before it comes too. That is what the records sleep for."""

    def __init__(self, ranks: Iterable[int]) -> None:
        """Knows the ranks."""
        self._changed = threading.Condition()
        self._meetings = dict.fromkeys(ranks, 0)
        self._busy = set(self._meetings)
        self._asleep: set[int] = set()

    def ended(self, rank: int) -> None:
        """Says that a rank's program has ended."""
        with self._changed:
            self._busy.discard(rank)
            self._meetings[rank] = sys.maxsize
            self._changed.notify_all()

    @contextmanager
    def meeting(self, rank: int) -> Iterator[None]:
        """Says that a rank waits for the others of its group. The n-th such waiting of each is for the same thing."""
        with self._changed:
            self._meetings[rank] += 1
            self._busy.discard(rank)
            self._changed.notify_all()
        try:
            yield
        finally:
            with self._changed:
                self._busy.add(rank)

    def wait_for_others(self, rank: int) -> None:
        """Waits until all others have ended, or wait: for this one, or as it does.

        Raises:
            TimeoutError: They never do.
        """

        def idle() -> bool:
            own = self._meetings[rank]
            return all(
                other in self._asleep or (other not in self._busy and met > own)
                for other, met in self._meetings.items()
            )

        with self._changed:
            self._asleep.add(rank)
            self._changed.notify_all()
            if not self._changed.wait_for(idle, PATIENCE_S):
                raise TimeoutError(f"rank {rank} waited for {sorted(self._busy - {rank})}")
            self._asleep.discard(rank)


def run(programs: Mapping[int, Callable[[], T]]) -> dict[int, T]:
    """Runs a program for each rank, all at once, and gives what they give."""
    with ThreadPoolExecutor(max(1, len(programs))) as threads:
        begun = {rank: threads.submit(copy_context().run, program) for rank, program in programs.items()}
        return {rank: it.result(PATIENCE_S) for rank, it in begun.items()}
