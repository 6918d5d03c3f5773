"""Signs of life on control links."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Heartbeat:
    """Signs of life on every link: one each `interval` seconds; `misses` of them missed mean a lost rank."""

    interval: float = 0.2
    misses: int = 3

    @property
    def patience(self) -> float:
        """Seconds without a sign of life after which a rank counts as lost."""
        return self.interval * self.misses
