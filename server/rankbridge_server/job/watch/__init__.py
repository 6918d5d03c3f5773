"""Records a rank's collectives: `from rankbridge_server.job import watch; watch.start()`, or `rankbridge watch`.

A rank may load this folder by its path, from whatever environment it runs in: it imports nothing else of rankbridge,
and no torch before the rank.
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .next_call import Admit

DIRECTORY = "RANKBRIDGE_WATCH_DIRECTORY"
GUARD = "RANKBRIDGE_GUARD"
_started = False


def start(directory: str | Path | None = None, *, guard: float | None = None) -> None:
    """Records every collective of this process from now on, into a file of its own in this directory.

    Without a directory: that of RANKBRIDGE_WATCH_DIRECTORY, or a new one. Repeated, it does nothing.

    With `guard`, which all ranks give, each collective is entered when all members of its group have called the same,
    and raises `rankbridge_server.GuardError` on each of them otherwise: `guard` is how many seconds they wait for each
    other. Sends and receives of Gloo are entered when both ends agree; they raise when the script waits for them.
    Without it, RANKBRIDGE_GUARD may say so. Raises ImportError where rankbridge is not installed.
    """
    global _started
    if _started:
        return
    # Before the first import of torch, which may begin it, too.
    _started = True
    try:
        _start(directory, guard)
    except BaseException:
        _started = False
        raise


def _start(directory: str | Path | None, guard: float | None) -> None:
    from .hook import install
    from .ring import Ring

    chosen = directory or os.environ.get(DIRECTORY) or tempfile.mkdtemp(prefix="rankbridge-watch-")
    if guard is None and os.environ.get(GUARD):
        guard = float(os.environ[GUARD])
    admit = None if guard is None else _guarding(guard)
    install(lambda rank, size: Ring.create(Path(chosen), rank, size), admit=admit)


def _guarding(timeout: float) -> Admit:
    # With all that the links import.
    from rankbridge_server.job.guard.guard import Guard
    from rankbridge_server.job.guard.new_groups import guard_new_groups

    guard = Guard(timeout)
    guard_new_groups(guard.admit_as)
    return guard.admit
