"""Starts the witness: the process beside the ranks of a host that answers observers for those that do not run."""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
from pathlib import Path

import rankbridge

from ..core.logger import LOGGER

_MODULE = "rankbridge_server.job.outside.witness"
_KEPT = ("PATH", "HOME", "LANG", "LC_ALL", "LD_LIBRARY_PATH", "PYTHONHOME", "TMPDIR", "VIRTUAL_ENV")
"""Of the environment: nothing that says which rank of a job this is, as the witness is none."""


class Witness:
    """Sees to it that a folder for observers has its witness: who gets its lock starts one, and hands it on."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._lock = self._opened()
        self._started: subprocess.Popen[bytes] | None = None

    def ensure(self) -> None:
        """Starts the witness if there is none. It does not wait."""
        if self._started is not None and self._started.poll() is not None:
            self._started = None
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            return
        try:
            # The lock goes along, and is held for as long as the witness lives. It leaves this process at once, so that
            # the user's code has no child that it does not know.
            self._started = subprocess.Popen(
                [sys.executable, "-m", _MODULE, str(self._folder), str(self._lock)],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                pass_fds=(self._lock,),
                env=_environment(),
                start_new_session=True,
            )
        except OSError as error:
            LOGGER.warning("nobody answers observers for ranks that do not run: %s", error)
            return
        os.close(self._lock)
        self._lock = self._opened()

    def close(self) -> None:
        """Forgets it. It ends when all ranks have ended."""
        os.close(self._lock)
        if self._started is not None:
            self._started.wait()

    def _opened(self) -> int:
        return os.open(self._folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)


def _environment() -> dict[str, str]:
    kept = {it: os.environ[it] for it in _KEPT if it in os.environ}
    packages = [str(Path(__file__).parents[2]), str(Path(rankbridge.__file__).parents[1])]
    paths = [*dict.fromkeys(packages), *filter(None, [os.environ.get("PYTHONPATH")])]
    return kept | {"PYTHONPATH": os.pathsep.join(paths)}
