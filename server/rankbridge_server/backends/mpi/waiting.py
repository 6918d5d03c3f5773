"""Waiting for MPI with a deadline, on cores that ranks share."""

from __future__ import annotations

import ctypes
import time
from collections.abc import Callable

from .binding import MPI

# Most operations end within this: until then a waiting rank only lets others have the core.
_EAGER_S = 0.001
# Afterwards it sleeps for a growing part of the time that it has waited. MPI only moves data while somebody asks.
_SLEEP_PART = 1 / 32
_SLEEP_MOST_S = 0.0005

# Not os.sched_yield, which in some versions of Python keeps this process's other threads waiting.
_yield_core = ctypes.CDLL(None).sched_yield


def ends(
    request: MPI.Request,
    deadline: float,
    stopped: Callable[[], bool] = lambda: False,
    status: MPI.Status | None = None,
) -> bool:
    """Wait for a request until `deadline`, of `time.monotonic`, or until `stopped`. False: it has not ended."""
    start = time.monotonic()
    while not request.Test(status):
        now = time.monotonic()
        if now > deadline or stopped():
            return False
        if now - start < _EAGER_S:
            _yield_core()
        else:
            time.sleep(min((now - start) * _SLEEP_PART, _SLEEP_MOST_S))
    return True
