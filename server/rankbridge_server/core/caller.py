"""Who calls a collective."""

from __future__ import annotations

from enum import Enum, auto


class Caller(Enum):
    """Who calls. Names are those of `rankbridge.v1.Caller`."""

    CONTROLLER = auto()
    SCRIPT = auto()
