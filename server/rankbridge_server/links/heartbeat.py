"""Heartbeats on control links."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Heartbeat:
    """Each link carries a heartbeat every `interval` seconds. A rank that misses `misses` of them is lost."""

    interval: float = 0.2
    misses: int = 3

    @property
    def patience(self) -> float:
        """Seconds of silence after which a rank counts as lost."""
        return self.interval * self.misses

    @property
    def doubt(self) -> float:
        """Seconds after that for which a process of this host is only late, unless it is stopped: it may be starved."""
        return 4 * self.patience
