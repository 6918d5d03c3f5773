"""Where ranks keep their records: in files of one folder, named by rank."""

from __future__ import annotations

import re
from pathlib import Path

_NAME = re.compile(r"rank-(\d+)\.record")


def record_path(folder: Path, rank: int) -> Path:
    """The file of a rank's record."""
    return folder / f"rank-{rank}.record"


def records_in(folder: Path) -> dict[int, Path]:
    """The records of a folder, by rank in ascending order. Raises OSError."""
    found = {int(it[1]): path for path in folder.iterdir() if (it := _NAME.fullmatch(path.name))}
    return dict(sorted(found.items()))
