"""What somebody says of a run, as far as it is scored."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from rankbridge_server.doctor.verdict import Condition, Kind


@dataclass(frozen=True)
class Said:
    """A statement. `sides`: ranks that asked for the same, or a circle. `detected`: that something is wrong."""

    kind: Kind
    blamed: frozenset[int] = frozenset()
    sides: tuple[frozenset[int], ...] = ()
    conditions: frozenset[Condition] = frozenset()
    detected: bool = True

    @classmethod
    def by_doctor(cls, verdict: Mapping[str, Any]) -> Said:
        """A verdict, as `--json` prints it."""
        kind = Kind(verdict["kind"])
        circle = [verdict["cycle"]] if verdict["cycle"] else [it["ranks"] for it in verdict["sides"]]
        return cls(
            kind,
            frozenset(it["rank"] for it in verdict["culprits"]),
            tuple(map(frozenset, circle)),
            frozenset(Condition(it["condition"]) for it in verdict["culprits"]),
            kind not in (Kind.HEALTHY, Kind.UNKNOWN),
        )
