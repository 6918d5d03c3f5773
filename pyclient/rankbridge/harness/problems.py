"""What is wrong with a scenario, and where it stands in its file."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from dataclasses import dataclass, field

Path = tuple[str | int, ...]
"""Where something is in a scenario: keys and places in lists, outermost first."""


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that is wrong.

    Attributes:
        path: Where, as keys. Of a file that could not be read: empty.
        text: What, for people.
        file: Name of the file.
        line: Its line, 1 the first. 0: of no line.
        column: Its column, 1 the first. 0: of no column.
    """

    path: Path
    text: str
    file: str = ""
    line: int = 0
    column: int = 0

    def __str__(self) -> str:
        """Gives ``FILE:LINE:COLUMN: text``, as compilers write it."""
        place = f"{self.file}:{self.line}:{self.column}" if self.line else self.file
        return f"{place}: {self.text}" if place else self.text


class BadScenario(Exception):
    """A scenario that cannot be run. Nothing has been started.

    Attributes:
        problems: Everything that was found.
    """

    def __init__(self, problems: Iterable[Problem]) -> None:
        """Keeps all problems."""
        self.problems = tuple(problems)
        super().__init__("\n".join(map(str, self.problems)))


@dataclass(slots=True)
class Findings:
    """Collects problems; the same one at the same place counts once."""

    problems: dict[tuple[Path, str], Problem] = field(default_factory=dict)

    def add(self, path: Path, text: str) -> None:
        """Notes a problem."""
        self.problems.setdefault((path, text), Problem(path, text))


def nearest(word: object, known: Iterable[str]) -> str:
    """Gives ``; did you mean `within_ms`?`` for a word that is near one of those known, else nothing."""
    near = difflib.get_close_matches(str(word), list(known), 1, 0.5)
    return f"; did you mean `{near[0]}`?" if near else ""
