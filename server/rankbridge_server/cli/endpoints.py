"""The file with the ranks' endpoints, for controllers."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any


def write(path: Path, gang: dict[str, Any]) -> None:
    """Writes the file atomically."""
    scratch = path.with_name(f".{path.name}.{os.getpid()}")
    scratch.write_text(json.dumps(gang, indent=2) + "\n")
    scratch.replace(path)


def describe(
    name: str, backend: str, generation: int, pids: list[int], endpoints: list[list[str]]
) -> dict[str, Any]:
    """The content of the file."""
    return {
        "gang": name,
        "size": len(pids),
        "backend": backend,
        "generation": generation,
        "ranks": [
            {"rank": rank, "pid": pid, "endpoints": targets}
            for rank, (pid, targets) in enumerate(zip(pids, endpoints, strict=True))
        ],
    }
