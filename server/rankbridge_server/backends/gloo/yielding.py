"""Threads that do not preempt others when they wake."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

_LOOP = "gloo_tcp_loop"


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


def let_loops_yield(*, yields: bool = True) -> None:
    """Does the same with Gloo's loop threads that run already in this process, or takes it back.

    Leaves alone what somebody has given another policy. Does nothing except on Linux.
    """
    with suppress(AttributeError, OSError):
        before, after = os.SCHED_OTHER, os.SCHED_BATCH
        if not yields:
            before, after = after, before
        for task in Path("/proc/self/task").iterdir():
            # One may have ended since it was listed.
            with suppress(OSError):
                name = (task / "comm").read_text().strip()
                if name == _LOOP and os.sched_getscheduler(int(task.name)) == before:
                    os.sched_setscheduler(int(task.name), after, os.sched_param(0))
