"""Progress of long steps, for people."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

# Shorter steps are not printed.
_AFTER_S = 1.0


@contextmanager
def progress(what: str) -> Iterator[None]:
    """Prints a step that takes over a second to standard error, and how long it took.

    On a terminal the seconds count up.
    """
    done = threading.Event()
    start = time.monotonic()
    shown = threading.Thread(target=_show, args=(what, start, done), daemon=True)
    shown.start()
    try:
        yield
    finally:
        done.set()
        shown.join()
        took = time.monotonic() - start
        if took >= _AFTER_S:
            end = "\r" if sys.stderr.isatty() else ""
            print(f"{end}{what}: {took:.1f} s", file=sys.stderr, flush=True)


def _show(what: str, start: float, done: threading.Event) -> None:
    if done.wait(_AFTER_S):
        return
    if not sys.stderr.isatty():
        print(f"{what} ...", file=sys.stderr, flush=True)
        return
    while not done.wait(0.1):
        print(f"\r{what} ... {time.monotonic() - start:.0f} s", end="", file=sys.stderr, flush=True)
