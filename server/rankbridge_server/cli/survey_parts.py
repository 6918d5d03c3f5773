"""Parts of the pages that show a survey."""

from __future__ import annotations

from collections.abc import Sequence

from rich.table import Table
from rich.text import Text

from ..core.printable import printable
from .survey import Pending, Survey
from .tables import table

_PHASES = {"check": "queued", "admission": "waiting", "data": "in the backend"}


def pending_table(found: Survey) -> Table | None:
    """What is pending, for how long, where, and for whom it waits; None: nothing is."""
    rows = [_pending(it) for it in found.pending]
    return table(("operation", "id", "group", "waited", "on ranks", "missing"), rows) if rows else None


def troubles(found: Survey) -> list[Text]:
    """Why ranks do not work, or do not answer."""
    over = {it.rank: it.generation_error for it in found.statuses if it.generation_error}
    return [
        Text(f"rank {rank}: {printable(str(error))}")
        for rank, error in (*over.items(), *found.failures.items())
    ]


def _pending(it: Pending) -> Sequence[object]:
    where = ", ".join(
        f"{' '.join(str(rank) for rank, at in it.at.items() if at == phase)} ({_PHASES.get(phase, phase)})"
        for phase in dict.fromkeys(it.at.values())
    )
    missing = "" if it.missing is None else " ".join(map(str, it.missing))
    return (it.operation, it.operation_id, it.group, f"{it.waited:.1f} s", where, missing)
