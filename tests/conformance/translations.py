"""The table of what the bridge says in another way than the systems that were recorded, and why.

There is an entry for what is of a system's own language, or a part of its implementation: an object, an attribute, a
name. What it explains is checked as a deviation is, and makes none. A part of `docs/conformance.md` is written from it.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from tests.conformance.compare import Difference
from tests.conformance.explanations import Explanation, read_table
from tests.conformance.moments import Moment
from tests.conformance.recorded import Case

TABLE = Path(__file__).with_name("translations.toml")


@dataclass(frozen=True, kw_only=True)
class Translation(Explanation):
    """One entry."""

    def __post_init__(self) -> None:
        """Raises AssertionError if it expects an error."""
        assert not self.expect.error, self.id

    def explains(self, case: Case, moment: Moment, difference: Difference) -> bool:
        """Whether it is about this difference, which is one of two values.

        An error in the place of a value, a value in that of an error, and another error are never said in another way.
        """
        of_values = difference.path.partition(".")[0] in ("ok", "args_after")
        return of_values and super().explains(case, moment, difference)


def read(table: Path = TABLE) -> tuple[Translation, ...]:
    """Reads the table; for what it raises see `read_table`."""
    return read_table(table, "translation", Translation)
