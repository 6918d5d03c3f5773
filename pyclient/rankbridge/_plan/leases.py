"""When sessions are renewed."""

from __future__ import annotations


class Schedule:
    """When the next renewal is due. One that takes long does not delay the next."""

    def __init__(self, period: float, now: float) -> None:
        """`period` in seconds; `now` by the clock that the caller uses throughout."""
        self._period = period
        self._due = now + period

    def wait(self, now: float) -> float:
        """Gives the seconds until the next renewal."""
        return max(0.0, self._due - now)

    def renewed(self, now: float) -> None:
        """Notes that a renewal begins."""
        self._due = max(self._due, now) + self._period
