"""What is read from files, and read again when they change."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Generic, TypeVar

from .logger import LOGGER

T = TypeVar("T")

LOOK_S = 1.0


class Reread(Generic[T]):
    """Gives what `load` makes of some files. Looks at most once a second whether they have changed. Thread-safe.

    What cannot be loaded is not used: the last good one stays, and the log has the reason, once.
    """

    def __init__(self, files: Sequence[Path], load: Callable[[], T]) -> None:
        """Raises what `load` raises, OSError or ValueError when something is wrong with a file."""
        self._files = files
        self._load = load
        self._lock = threading.Lock()
        self._state = self._look()
        self._loaded = load()
        self._next = time.monotonic() + LOOK_S

    def __call__(self) -> T:
        """The latest good one."""
        if time.monotonic() >= self._next:
            self.look()
        return self._loaded

    def look(self) -> None:
        """Looks at the files now."""
        with self._lock:
            self._next = time.monotonic() + LOOK_S
            state = self._look()
            if state == self._state:
                return
            self._state = state
            try:
                self._loaded = self._load()
            except (OSError, ValueError) as error:
                LOGGER.warning("the files before stay in use: %s", error, extra={"event": "files"})

    def _look(self) -> list[tuple[int, ...]]:
        return [_signature(path) for path in self._files]


def _signature(path: Path) -> tuple[int, ...]:
    try:
        found = path.stat()
    except OSError:
        return ()
    return found.st_ino, found.st_mtime_ns, found.st_size, found.st_mode
