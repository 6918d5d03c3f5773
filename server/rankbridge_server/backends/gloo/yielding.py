"""Threads that do not preempt others when they wake."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress


@contextmanager
def yielding() -> Iterator[None]:
    """Threads that start in this context do not preempt running ones when they wake. Does nothing except on Linux.

    Gloo's loop thread spins on a connection's lock while another thread holds it. If it has preempted the holder, it
    spins until its time slice is over, some milliseconds. New threads inherit batch scheduling; this thread leaves it
    again where the system permits.
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
