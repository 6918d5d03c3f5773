"""The stacks of the threads of this process, which go on while one looks."""

from __future__ import annotations

import gc
import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


@contextmanager
def current_frames() -> Iterator[dict[int, FrameType]]:
    """The innermost frame of each thread, by Python's number of the thread; read its callers (`f_back`) in the block.

    CPython 3.11 makes the object of a frame when somebody asks for it, and may collect garbage then. A finalizer may
    let the frame's thread go on, and the object is of a frame that is over: the process crashes or hangs, or what it
    reads is wrong. So no garbage is collected during the block. Later versions collect only between two instructions.
    """
    if sys.version_info >= (3, 12):
        yield sys._current_frames()
        return
    _PAUSE.begin()
    try:
        yield sys._current_frames()
    finally:
        _PAUSE.end()


class _Pause:
    """No garbage is collected while anybody wants it so."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._wanted = 0
        self._was_enabled = False

    def begin(self) -> None:
        with self._lock:
            if not self._wanted:
                self._was_enabled = gc.isenabled()
                gc.disable()
            self._wanted += 1

    def end(self) -> None:
        with self._lock:
            self._wanted -= 1
            if not self._wanted and self._was_enabled:
                gc.enable()

    def forked(self) -> None:
        """Whoever wanted it is in the other process."""
        if self._wanted and self._was_enabled:
            gc.enable()
        self._lock = threading.Lock()
        self._wanted = 0


_PAUSE = _Pause()
os.register_at_fork(after_in_child=lambda: _PAUSE.forked())
