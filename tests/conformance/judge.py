"""Judges cases: what a rank answered is what was recorded, or an entry of a table explains it, or it is a failure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from tests.conformance.compare import Difference, differences
from tests.conformance.deviations import Deviation
from tests.conformance.explanations import Explanation
from tests.conformance.moments import Moment
from tests.conformance.recorded import Case


@dataclass(frozen=True)
class Verdict:
    """How a case went.

    Attributes:
        case: The case.
        deviations: Ids of the deviations that explain its differences.
        translations: Ids of the translations that do.
        failures: What nothing explains, in words.
        moments: How many answers were compared.
        client: Name of the client that replayed it.
    """

    case: Case
    deviations: frozenset[str] = frozenset()
    translations: frozenset[str] = frozenset()
    failures: tuple[str, ...] = ()
    moments: int = 0
    client: str = "python"

    @property
    def outcome(self) -> str:
        """One of "passed", "deviations" and "failed". What is only said in another way has passed."""
        if self.failures:
            return "failed"
        return "deviations" if self.deviations else "passed"

    @property
    def explained_by(self) -> frozenset[str]:
        """Ids of all entries that it needs."""
        return self.deviations | self.translations


@dataclass
class _Found:
    deviations: set[str] = field(default_factory=set)
    translations: set[str] = field(default_factory=set)
    failures: list[str] = field(default_factory=list)


def judge(case: Case, moments: Iterable[Moment], table: Sequence[Explanation]) -> Verdict:
    """Judges a case. An exception of the replay itself is not caught."""
    found, count = _Found(), 0
    for moment in moments:
        count += 1
        by_version = [differences(recorded, moment.answer) for recorded in moment.recorded]
        if not all(by_version):
            continue
        # Of several versions the tables speak of the newest, which is the last.
        for difference in by_version[-1]:
            _explain(case, moment, difference, table, found)
    if count == 0:
        found.failures.append("nothing was compared")
    return Verdict(
        case,
        deviations=frozenset(found.deviations),
        translations=frozenset(found.translations),
        failures=tuple(found.failures),
        moments=count,
    )


def _explain(
    case: Case, moment: Moment, difference: Difference, table: Sequence[Explanation], found: _Found
) -> None:
    where = f"step {moment.step}, rank {moment.rank}, {moment.method}: {difference}"
    entry = next((entry for entry in table if entry.explains(case, moment, difference)), None)
    if entry is None:
        found.failures.append(where)
        return
    wrong = entry.expect.wrong(case, moment, difference)
    if wrong is not None:
        found.failures.append(f"{where}; {type(entry).__name__.lower()} {entry.id}: {wrong}")
    elif isinstance(entry, Deviation):
        found.deviations.add(entry.id)
    else:
        found.translations.add(entry.id)
