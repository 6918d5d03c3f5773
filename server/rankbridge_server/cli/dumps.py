"""The record of a gang's ranks as files of torch's flight recorder."""

from __future__ import annotations

import pickle
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

from ..core.printable import lines
from .every_rank import every_rank
from .progress import progress

if TYPE_CHECKING:
    from rankbridge import Gang

PREFIX = "rank_"
PATIENCE_S = 1.0
"""For how long members wait for an operation before it is written that others have not come."""


def write_dumps(gang: Gang, folder: Path) -> int:
    """Writes a dump for each rank that answers; returns the exit status. Raises OSError, also if it has files."""
    import rankbridge

    with progress("asking the ranks"):
        before, _ = every_rank(gang, lambda rank: rank.record(caller="controller"))
        if any(it.done is None for record in before.values() for it in record):
            time.sleep(PATIENCE_S)
        answers, failures = every_rank(gang, lambda rank: (rank.record(caller="controller"), rank.status()))
    groups = {
        it.name: it
        for _, status in answers.values()
        for it in status.groups
        if it.rank_in_group is not None and it.generation == status.generation
    }
    records = {rank: record for rank, (record, _) in answers.items()}
    dumps = rankbridge.flight_recorder(records, groups.values(), before=before)
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    if any(folder.iterdir()):
        # The tool takes every file of a folder for a rank's.
        raise FileExistsError(f"{folder} is not empty")
    for rank, dump in dumps.items():
        (folder / f"{PREFIX}{rank}").write_bytes(pickle.dumps(dump, protocol=2))
    for rank, error in failures.items():
        print(f"rankbridge record: rank {rank} has no dump: {lines(str(error))}", file=sys.stderr)
    return 1 if failures else 0
