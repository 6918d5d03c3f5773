"""What is pending, joined over the ranks: since when, in which phase, and which ranks it waits for."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from rankbridge._plan.record import CONTROLLER
from rankbridge.errors import intervals

from .batch import Slice, shown

MOST_ROWS = 100
_PHASES = {"check": "queued", "admission": "waiting", "data": "in the backend"}
_POINT_TO_POINT = ("send", "recv", "isend", "irecv")
Missing = Mapping[tuple[str, str, str], Collection[int]]
"""By group, operation and id: ranks that have not come, as the group's leader says."""


@dataclass(slots=True)
class Pending:
    """An operation that ranks have not answered. `missing`: ranks for which it waits; None: not known."""

    number: int
    slices: list[Slice] = field(default_factory=list)
    missing: frozenset[int] | None = None

    @property
    def since(self) -> float:
        """When the first rank was called."""
        return min(it.called for it in self.slices)

    def as_row(self) -> dict[str, Any]:
        """The row of a table."""
        one = min(self.slices, key=lambda it: it.called).operation
        phases: dict[str, list[int]] = {}
        sites: dict[str, list[int]] = {}
        for it in self.slices:
            phases.setdefault(it.operation.phase, []).append(it.rank)
            sites.setdefault(it.operation.site, []).append(it.rank)
        missing = sorted(self.missing or ())
        return {
            "number": self.number,
            "what": shown(one.function or one.operation),
            "group": shown(one.group),
            "id": shown(one.operation_id),
            "since": self.since,
            "contract": shown(one.contract),
            "at": "; ".join(f"{intervals(ranks)} {_PHASES.get(it, it)}" for it, ranks in phases.items()),
            "waits_for": intervals(missing) if missing else "",
            "site": "; ".join(
                shown(it) if len(sites) == 1 else f"{shown(it)} ({intervals(ranks)})"
                for it, ranks in sites.items()
                if it
            ),
        }


def joined(
    slices: Iterable[Slice],
    seen: Mapping[int, Collection[int]],
    members: Mapping[str, Collection[int]],
    said: Missing,
    *,
    admits: bool,
) -> list[Pending]:
    """The pending operations, the oldest first.

    `seen`: by number, where an operation was seen. `said`: what leaders say. `admits`: no member is in the
    backend in a controller's operation before all have come.
    """
    found: dict[int, Pending] = {}
    for it in slices:
        found.setdefault(it.number, Pending(it.number)).slices.append(it)
    for pending in found.values():
        one = pending.slices[0].operation
        known = said.get((one.group, one.operation, one.operation_id))
        admitted = admits and one.caller == CONTROLLER
        entered = admitted and any(it.operation.phase == "data" for it in pending.slices)
        if known is not None:
            pending.missing = frozenset(known)
        elif one.operation.endswith(_POINT_TO_POINT) or one.group not in members or not one.operation_id:
            pending.missing = None
        elif not entered:
            pending.missing = frozenset(members[one.group]) - frozenset(seen.get(pending.number, ()))
    return sorted(found.values(), key=lambda it: it.since)
