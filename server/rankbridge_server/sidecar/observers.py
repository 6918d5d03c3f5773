"""The folder in which the ranks of one host serve those who may only observe."""

from __future__ import annotations

import os
from pathlib import Path

from ..core.processes import started
from ..core.rank import Identity
from ..core.record.files import record_path, records_in
from ..core.record.memory import BadRecord, RecordMemory
from . import endpoints
from .runtime_dir import GANG

MODE = 0o640
"""Of files there: whoever may enter the folder may read them, if they have its group."""


class Observers:
    """A folder with a unix socket and the record of each rank, and an endpoints file without tokens.

    The folder's permissions say who gets in. The records stay when the ranks have ended. Raises OSError when it cannot
    be made: then with permissions for its owner alone.
    """

    def __init__(self, folder: Path, identity: Identity) -> None:
        folder.mkdir(mode=0o700, exist_ok=True)
        self._ranks = range(identity.world_size)
        self.folder = folder.absolute()
        self._file = self.folder / GANG if identity.rank == 0 else None
        self._rank = identity.rank
        self.socket = self._socket(identity.rank)
        self.record = record_path(self.folder, identity.rank)

    def publish(self) -> None:
        """Writes the endpoints file, and removes records that a gang before has left, as rank 0."""
        if self._file is not None:
            for rank, path in records_in(self.folder).items():
                if rank not in self._ranks or _is_left(path):
                    path.unlink(missing_ok=True)
            ranks = [{"rank": rank, "endpoints": [self._socket(rank)]} for rank in self._ranks]
            endpoints.write(self._file, {"size": len(ranks), "ranks": ranks})
            os.chmod(self._file, MODE)

    def remove(self) -> None:
        """Removes the endpoints file, as rank 0, and the socket, also where the witness is in its place."""
        for name in (f"rank-{self._rank}", f".r{self._rank}"):
            (self.folder / name).unlink(missing_ok=True)
        if self._file is not None:
            self._file.unlink(missing_ok=True)

    def _socket(self, rank: int) -> str:
        return f"unix:{self.folder}/rank-{rank}"


def _is_left(path: Path) -> bool:
    """Whether a record is that of a process that has ended, or is none."""
    try:
        record = RecordMemory.open(path)
    except (OSError, BadRecord):
        return True
    return started(record.pid) != record.began
