"""Records a rank's collectives: `from rankbridge_server.job import watch; watch.start()`, or `rankbridge watch`.

A rank may load this folder by its path, from whatever environment it runs in: it imports nothing else of rankbridge,
and no torch before the rank.
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

DIRECTORY = "RANKBRIDGE_WATCH_DIRECTORY"
_started = False


def start(directory: str | Path | None = None) -> None:
    """Records every collective of this process from now on, into a file of its own in this directory.

    Without a directory: that of RANKBRIDGE_WATCH_DIRECTORY, or a new one. Repeated, it does nothing.
    """
    global _started
    if _started:
        return
    from .hook import install
    from .ring import Ring

    chosen = directory or os.environ.get(DIRECTORY) or tempfile.mkdtemp(prefix="rankbridge-watch-")
    install(lambda rank, size: Ring.create(Path(chosen), rank, size))
    _started = True
