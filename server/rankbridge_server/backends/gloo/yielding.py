"""Threads that let others finish before they run."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress


@contextmanager
def yielding() -> Iterator[None]:
    """Threads that are begun meanwhile do not interrupt those that run when they are woken. Linux; elsewhere nothing.

    Gloo's loop thread only tries the lock of a connection, and asks again at once for as long as another thread has it.
    One that has interrupted the very thread that has it spins until its time slice is over, some milliseconds. Batch
    scheduling is inherited, and is given back by whoever may be.
    """
    changed = False
    with suppress(AttributeError, OSError):
        if os.sched_getscheduler(0) == os.SCHED_OTHER:
            os.sched_setscheduler(0, os.SCHED_BATCH, os.sched_param(0))
            changed = True
    try:
        yield
    finally:
        if changed:
            with suppress(OSError):
                os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))
