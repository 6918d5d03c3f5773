"""One thing that the bridge adds, as measured."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from bench.markdown import table


@dataclass(frozen=True, slots=True)
class Overhead:
    """What was measured of it.

    Attributes:
        title: What adds.
        about: How it was measured, in a sentence or two.
        heads: Of the columns.
        rows: A cell for each column.
    """

    title: str
    about: str
    heads: Sequence[str]
    rows: Sequence[Sequence[str]]

    def lines(self) -> Iterator[str]:
        """As a section of a page."""
        yield from (f"## {self.title}", "", self.about, "")
        yield from table(self.heads, self.rows)


def judged(value: float, limit: float, unit: str = "") -> tuple[str, str]:
    """Cells: the limit, and whether the value reaches it."""
    return f"{limit:g}{unit}", "reached" if value <= limit else "not reached"
