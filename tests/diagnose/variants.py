"""In which surroundings a program runs, and how the doctor is asked."""

from __future__ import annotations

from enum import StrEnum


class Variant(StrEnum):
    """One for each table of docs/doctor.md."""

    UNPREPARED = "unprepared"
    """A torchrun job that knows nothing of rankbridge."""
    WATCHED = "watched"
    """The same under `rankbridge watch`."""
    GUARDED = "guarded"
    """The same under `rankbridge watch --guard`, which ends it where ranks disagree or one is lost."""
    ATTACHED = "attached"
    """The same, whose ranks call `rankbridge_server.attach`."""
    GANG = "gang"
    """A gang of `rankbridge up`, and a controller that calls its ranks."""
