"""The table of what the bridge does otherwise than the systems that were recorded, and why.

There is an entry only where what was recorded is a bug, a crash or a hang. `docs/deviations.md` is written from it.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from tests.conformance.explanations import Explanation, read_table

TABLE = Path(__file__).with_name("deviations.toml")

KINDS = {
    "bug": "wrong values, or lost ones; a mistake that nothing checks; or what is there by its signature and fails"
    " where it should work, as what is missing on CPU ranks",
    "crash": "a process dies, or a call fails by accident: in an assertion, a conversion or a lookup inside",
    "hang": "a rank waits for ever, or until a timeout while another has failed, which is a bug as well",
}
"""What is the matter with a recorded behaviour. Nothing else makes a deviation."""


@dataclass(frozen=True, kw_only=True)
class Deviation(Explanation):
    """One entry.

    Attributes:
        kind: One of `KINDS`.
    """

    kind: str

    def __post_init__(self) -> None:
        """Raises AssertionError if there is no such kind."""
        assert self.kind in KINDS, self.id


def read(table: Path = TABLE) -> tuple[Deviation, ...]:
    """Reads the table; for what it raises see `read_table`."""
    return read_table(table, "deviation", Deviation)
