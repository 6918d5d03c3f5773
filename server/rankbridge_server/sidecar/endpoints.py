"""The files with the ranks' endpoints, for controllers."""

from __future__ import annotations

import json
import secrets
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ..core.tokens import Tokens
from .token_files import write_new


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


class Published:
    """What controllers are to know of a gang, in files that are gone when the gang is. Thread-safe."""

    def __init__(self, gang: dict[str, Any], paths: Sequence[Path]) -> None:
        """Writes the files. Raises OSError."""
        self._gang = gang
        self._paths = paths
        self._lock = threading.Lock()
        self._write()

    def formed(self, generation: int) -> None:
        """A generation was formed."""
        with self._lock:
            if generation > self._gang["generation"]:
                self._gang["generation"] = generation
                self._write()

    def replaced(self, rank: int, pid: int, targets: list[str]) -> None:
        """Another process is this rank."""
        with self._lock:
            self._gang["ranks"][rank].update(pid=pid, endpoints=targets)
            self._write()

    def serves(self, what: str, url: str) -> None:
        """Something of it, as its metrics, is served there."""
        with self._lock:
            self._gang[what] = url
            self._write()

    def show(self, tokens: Tokens) -> None:
        """The tokens are others."""
        with self._lock:
            self._gang["tokens"] = tokens.for_controllers()
            self._write()

    def remove(self) -> None:
        """Removes the files."""
        with self._lock:
            for path in self._paths:
                path.unlink(missing_ok=True)

    def _write(self) -> None:
        for path in self._paths:
            write(path, self._gang)
