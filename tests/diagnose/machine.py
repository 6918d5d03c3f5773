"""One machine for several runs: they begin beside each other, and are judged while none begins."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager


class Machine:
    """Lets judging have the machine alone, but for jobs that are there already. Thread-safe."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._beginning = 0
        self._judging = False
        self._waiting = 0

    @contextmanager
    def beginning(self) -> Iterator[None]:
        """While a run begins."""
        with self._changed:
            self._changed.wait_for(lambda: not self._judging and not self._waiting)
            self._beginning += 1
        try:
            yield
        finally:
            with self._changed:
                self._beginning -= 1
                self._changed.notify_all()

    @contextmanager
    def judging(self) -> Iterator[None]:
        """While a run is judged, and ended."""
        with self._changed:
            self._waiting += 1
            self._changed.wait_for(lambda: not self._judging and not self._beginning)
            self._waiting -= 1
            self._judging = True
        try:
            yield
        finally:
            with self._changed:
                self._judging = False
                self._changed.notify_all()
