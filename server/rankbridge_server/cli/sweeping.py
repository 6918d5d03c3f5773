"""Removing the shared memory of killed ranks."""

from __future__ import annotations

from ..agent.agent import Watcher
from ..core.shared_memory.directory import sweep


class Sweeping:
    """A watcher that sweeps when a rank has ended, and passes events on to another."""

    def __init__(self, watcher: Watcher) -> None:
        self._watcher = watcher

    def suspected(self, rank: int, pid: int) -> None:
        """Does nothing: the rank has not ended yet."""
        self._watcher.suspected(rank, pid)

    def exited(self, rank: int, pid: int, how: str, replaced: bool) -> None:
        """Sweeps before it reports."""
        sweep()
        self._watcher.exited(rank, pid, how, replaced)

    def replaced(self, rank: int, pid: int, endpoints: list[str]) -> None:
        """Does nothing: the sweep was at the exit."""
        self._watcher.replaced(rank, pid, endpoints)
