"""TCP connections that processes of this host have."""

from __future__ import annotations

import os
from pathlib import Path

_ESTABLISHED = "01"


def has_connection(pid: int, port: int) -> bool:
    """Whether a process has a connection with this port at either end. False if this user may not see it."""
    try:
        inodes = {line[9] for it in ("tcp", "tcp6") for line in _table(pid, it) if port in _ports(line)}
        held = {_target(it.path) for it in os.scandir(f"/proc/{pid}/fd")} if inodes else set()
    except OSError:
        return False
    return any(f"socket:[{it}]" in held for it in inodes)


def _table(pid: int, name: str) -> list[list[str]]:
    """Fields of each line about a connection, in the network namespace of a process."""
    path = Path(f"/proc/{pid}/net/{name}")
    # A kernel without IPv6 has no table of it.
    lines = path.read_text().splitlines()[1:] if path.exists() else []
    return [fields for it in lines if (fields := it.split())[3] == _ESTABLISHED]


def _ports(fields: list[str]) -> set[int]:
    return {int(it.rpartition(":")[2], 16) for it in fields[1:3]}


def _target(descriptor: str) -> str:
    try:
        return os.readlink(descriptor)
    except OSError:
        # It was closed meanwhile.
        return ""
