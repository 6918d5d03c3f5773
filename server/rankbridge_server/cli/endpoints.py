"""The file with the ranks' endpoints, for controllers."""

from __future__ import annotations

import json
import secrets
from pathlib import Path
from typing import Any

from ..core.tokens import Tokens
from .tokens import write_new


def write(path: Path, gang: dict[str, Any]) -> None:
    """Write the file so that a reader sees all of it or nothing, and nobody but the owner anything."""
    scratch = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
    write_new(scratch, json.dumps(gang, indent=2) + "\n")
    try:
        scratch.replace(path)
    except OSError:
        scratch.unlink()
        raise


def describe(
    name: str,
    backend: str,
    generation: int,
    pids: list[int],
    endpoints: list[list[str]],
    tokens: Tokens | None,
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
        **({"tokens": tokens.for_controllers()} if tokens else {}),
    }
