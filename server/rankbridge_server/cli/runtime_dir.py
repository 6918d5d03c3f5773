"""A directory for a gang's sockets, short enough for their paths, gone when the gang is."""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_PREFIX = "rankbridge-"
_LOCK = "lock"


@contextmanager
def runtime_dir() -> Iterator[Path]:
    """A directory of this process. Those that killed processes left behind are removed first."""
    _sweep()
    path, lock = _locked()
    try:
        yield path
    finally:
        shutil.rmtree(path, ignore_errors=True)
        os.close(lock)


def _locked() -> tuple[Path, int]:
    while True:
        path = Path(tempfile.mkdtemp(prefix=_PREFIX))
        lock = os.open(path / _LOCK, os.O_CREAT | os.O_RDWR, 0o600)
        fcntl.flock(lock, fcntl.LOCK_EX)
        if path.exists():
            return path, lock
        # Another process that began at the same time has locked it first, and taken it for one left behind.
        os.close(lock)


def _sweep() -> None:
    for path in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*"):
        try:
            if path.stat().st_uid != os.getuid():
                continue
            lock = os.open(path / _LOCK, os.O_RDWR)
        except OSError:
            # Not ours, gone meanwhile, or not locked yet by the process that makes it.
            continue
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(path, ignore_errors=True)
        except OSError:
            # Its gang lives: somebody holds the lock.
            continue
        finally:
            os.close(lock)
