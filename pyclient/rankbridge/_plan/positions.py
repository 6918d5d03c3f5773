"""How far something that ranks number upward was read."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Position:
    """How far a rank's events, or its record, were read.

    Attributes:
        number: Number of the newest that was read. 0: none.
        log: Log, or record, in which it counts; another process of the rank has another. 0: whichever the rank has.
    """

    number: int
    log: int = 0
