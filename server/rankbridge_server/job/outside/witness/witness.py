"""Comes between observers and the ranks of a folder, for as long as one of these lives."""

from __future__ import annotations

import os
import signal
import time
from contextlib import suppress
from pathlib import Path

from ....core.record.files import records_in
from ....core.record.memory import BadRecord
from ..observed_rank import ObservedRank
from .server import RankServer

_LOOK_S = 0.2


def run(folder: str) -> None:
    """Answers at the sockets of a folder's ranks until all of them have ended."""
    # A terminal's interrupt is for the job.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    witness = Witness(Path(folder))
    try:
        # The rank that has started this process has its record there.
        while witness.look():
            time.sleep(_LOOK_S)
    finally:
        witness.close()


class Witness:
    """The ranks of a folder, each with a server in its socket's place."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._servers: dict[int, RankServer] = {}
        self._files: dict[int, int] = {}

    def look(self) -> bool:
        """Takes in ranks that are new. Returns whether one lives."""
        for rank, path in records_in(self._folder).items():
            with suppress(OSError, BadRecord):
                # Each process of a rank has a file of its own, and the last one's is there until this one is mapped.
                status = path.lstat()
                file = status.st_ino
                # Who may write into the folder may put something there that would end this process.
                if self._files.get(rank) == file or status.st_uid != os.geteuid():
                    continue
                found = ObservedRank(path, rank)
                if found.is_dead:
                    continue
                if rank in self._servers:
                    self._servers[rank].close()
                self._servers[rank] = RankServer(found, self._folder)
                self._files[rank] = file
        living = [it for it in self._servers.values() if it.is_needed]
        for it in living:
            with suppress(OSError):
                it.take_place()
        return bool(living)

    def close(self) -> None:
        """Ends all servers, and removes their sockets."""
        for it in self._servers.values():
            it.close()
