"""Waiting for what another process or thread does, and not for ever."""

from __future__ import annotations

import time
from collections.abc import Callable

PATIENCE_S = 60.0
# Between two questions: who asks without a pause keeps the threads of its own process from making it true.
PAUSE_S = 0.001


def until(condition: Callable[[], bool], patience_s: float = PATIENCE_S) -> None:
    """Ask until the answer is yes; fail if it never is."""
    deadline = time.monotonic() + patience_s
    while not condition():
        assert time.monotonic() < deadline, "it did not come true in time"
        time.sleep(PAUSE_S)
