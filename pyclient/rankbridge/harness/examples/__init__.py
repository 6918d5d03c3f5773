"""Scenarios to begin with."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path

NAMES = ("sum", "mismatch", "killed", "unequal", "crossed")


def write_examples(folder: Path) -> list[Path]:
    """Writes the examples into a folder, and gives their paths.

    Raises:
        FileExistsError: One of them is there already; none is written then.
        OSError: They cannot be written.
    """
    paths = [folder / f"{name}.toml" for name in NAMES]
    for path in paths:
        if path.exists():
            raise FileExistsError(f"{path} is there already")
    folder.mkdir(parents=True, exist_ok=True)
    for path in paths:
        path.write_bytes(files(__package__).joinpath(path.name).read_bytes())
    return paths
