"""Judges cases: what a rank answered is what was recorded, or a deviation that the table explains, or a failure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from tests.conformance.compare import Difference, differences
from tests.conformance.deviations import Deviation
from tests.conformance.moments import Moment
from tests.conformance.recorded import Case


@dataclass(frozen=True)
class Verdict:
    """How a case went.

    Attributes:
        case: The case.
        deviations: Ids of the entries that explain its differences.
        failures: What nothing explains, in words.
        moments: How many answers were compared.
        client: Name of the client that replayed it.
    """

    case: Case
    deviations: frozenset[str] = frozenset()
    failures: tuple[str, ...] = ()
    moments: int = 0
    client: str = "python"

    @property
    def outcome(self) -> str:
        """One of "passed", "deviations" and "failed"."""
        if self.failures:
            return "failed"
        return "deviations" if self.deviations else "passed"


@dataclass
class _Found:
    deviations: set[str] = field(default_factory=set)
    failures: list[str] = field(default_factory=list)


def judge(case: Case, moments: Iterable[Moment], table: Sequence[Deviation]) -> Verdict:
    """Judges a case. An exception of the replay itself is not caught."""
    found, count = _Found(), 0
    for moment in moments:
        count += 1
        by_version = [differences(recorded, moment.answer) for recorded in moment.recorded]
        if not all(by_version):
            continue
        # Of several versions the table speaks of the newest, which is the last.
        for difference in by_version[-1]:
            _explain(case, moment, difference, table, found)
    if count == 0:
        found.failures.append("nothing was compared")
    return Verdict(case, frozenset(found.deviations), tuple(found.failures), count)


def _explain(
    case: Case, moment: Moment, difference: Difference, table: Sequence[Deviation], found: _Found
) -> None:
    where = f"step {moment.step}, rank {moment.rank}, {moment.method}: {difference}"
    entries = [entry for entry in table if entry.explains(case, moment, difference)]
    if not entries:
        found.failures.append(where)
    for entry in entries[:1]:
        wrong = entry.expect.wrong(case, moment, difference)
        if wrong is None:
            found.deviations.add(entry.id)
        else:
            found.failures.append(f"{where}; deviation {entry.id}: {wrong}")
