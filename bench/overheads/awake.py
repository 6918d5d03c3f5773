"""Processors that do not halt.

A virtual machine halts a processor on which nobody runs, by its own judgement of how long nobody will, and the first
instructions after a halt take several times as long: the same bare call took 22 us or 32, and what was added had the
difference in it, or not.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
from collections.abc import Iterator


@contextlib.contextmanager
def processors_awake() -> Iterator[None]:
    """Keeps each processor awake meanwhile, by a loop of idle priority, which gives way to any other thread."""
    context = multiprocessing.get_context("spawn")
    loops = [context.Process(target=_loop, args=(it,), daemon=True) for it in sorted(os.sched_getaffinity(0))]
    for loop in loops:
        loop.start()
    try:
        yield
    finally:
        for loop in loops:
            loop.terminate()
            loop.join()


def _loop(processor: int) -> None:
    os.sched_setaffinity(0, {processor})
    os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
    while True:
        pass
