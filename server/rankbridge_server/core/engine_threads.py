"""Threads that may be inside an engine's own code: they must have ended before the interpreter does.

A thread that comes back from C++ to an interpreter that is ending is ended there, by unwinding C++ frames that allow no
unwinding: the process aborts.
"""

from __future__ import annotations

import threading
import time
import weakref
from collections.abc import Callable

_STARTED: weakref.WeakSet[threading.Thread] = weakref.WeakSet()
_LOCK = threading.Lock()


def start(name: str, target: Callable[[], object]) -> threading.Thread:
    """Starts a daemon thread."""
    thread = threading.Thread(target=target, name=name, daemon=True)
    with _LOCK:
        _STARTED.add(thread)
    thread.start()
    return thread


def join(timeout: float) -> list[str]:
    """Waits until all that were started have ended, at most `timeout` seconds. Returns the names of those that run."""
    end = time.monotonic() + timeout
    while running := _running():
        running[0].join(max(0.0, end - time.monotonic()))
        if time.monotonic() >= end:
            return [it.name for it in _running()]
    return []


def _running() -> list[threading.Thread]:
    # A thread that ends may start another: of closing, for example.
    with _LOCK:
        started = list(_STARTED)
    return [it for it in started if it.is_alive() and it is not threading.current_thread()]
