"""Cases that are known to fail: by pattern, with a reason. Such a case that passes fails the run."""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Sequence
from dataclasses import dataclass

from rankbridge.harness.cases import checked, parsed, read
from rankbridge.harness.kinds import Many, Record, Text, Whole, Word

KNOWN = Record(
    "known",
    {
        "pattern": Word(Text(300), "Name of a case, with * for anything.", required=True),
        "reason": Word(Text(1000), "Why it fails.", required=True),
    },
)
FILE = Record(
    "known_failing",
    {
        "format": Word(Whole(1, 1), "Format of the file: 1.", required=True),
        "known": Word(Many(KNOWN), "Cases.", required=True),
    },
)


@dataclass(frozen=True)
class KnownFailing:
    """Patterns with reasons."""

    entries: Sequence[tuple[str, str]] = ()

    def reason(self, name: str) -> str:
        """Gives why a case is known to fail; empty: it is not."""
        return next((reason for pattern, reason in self.entries if _matches(pattern, name)), "")

    def unused(self, names: Sequence[str]) -> list[str]:
        """Gives the patterns that match no case."""
        return [pattern for pattern, _ in self.entries if not any(_matches(pattern, it) for it in names)]


def load_known(file: str) -> KnownFailing:
    """Reads the file.

    Raises:
        BadScenario: It is not there, or is wrong.
    """
    data, positions = parsed(read(file), file)
    checked(FILE, data, positions, file)
    return KnownFailing([(it["pattern"], it["reason"]) for it in data["known"]])


def _matches(pattern: str, name: str) -> bool:
    # Names have brackets, which mean nothing here.
    literal = re.sub(r"[\[?]", lambda it: f"[{it[0]}]", pattern)
    return fnmatch.fnmatchcase(name, literal)
