"""Removing what killed ranks leave in shared memory."""

from __future__ import annotations

from ..agent.agent import Watcher
from ..core.shared_memory.directory import sweep


class Sweeping:
    """A watcher that sweeps when a rank has ended, and tells another."""

    def __init__(self, watcher: Watcher) -> None:
        self._watcher = watcher

    def suspected(self, rank: int, pid: int) -> None:
        """Nothing is left yet."""
        self._watcher.suspected(rank, pid)

    def exited(self, rank: int, pid: int, how: str, replaced: bool) -> None:
        """Sweeps before it reports."""
        sweep()
        self._watcher.exited(rank, pid, how, replaced)

    def replaced(self, rank: int, pid: int, endpoints: list[str]) -> None:
        """Nothing is left any more."""
        self._watcher.replaced(rank, pid, endpoints)
