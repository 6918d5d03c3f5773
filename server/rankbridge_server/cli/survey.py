"""What the ranks of a gang say of themselves, each as far as it answers."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from .every_rank import every_rank

if TYPE_CHECKING:
    from rankbridge import Gang, PendingOperation, RankPending, RankStatus


@dataclass(frozen=True, slots=True)
class Pending:
    """An operation that members have accepted and not answered.

    `at`: by rank, its phase. `missing`: ranks that have not come; None: not known.
    """

    operation: str
    group: str
    operation_id: str
    waited: float
    at: Mapping[int, str]
    missing: tuple[int, ...] | None


@dataclass(frozen=True, slots=True)
class Survey:
    """The answers of one time. `failures`: of ranks that gave none. `since`: when each was last reached, 0.0: never."""

    statuses: Sequence[RankStatus] = ()
    failures: Mapping[int, Exception] = field(default_factory=dict)
    pending: Sequence[Pending] = ()
    reached: Mapping[int, float] = field(default_factory=dict)

    @property
    def is_whole(self) -> bool:
        """Whether every rank answers and is in a generation that is not over."""
        return not self.failures and not any(it.generation_error for it in self.statuses)

    def lost_since(self, rank: int) -> float:
        """When other ranks lost this one, or it last answered here: seconds since 1970. 0.0: not known."""
        lost = [
            it.generation_since
            for it in self.statuses
            if it.generation_error and any(each.rank == rank for each in it.generation_error.ranks)
        ]
        return min(lost, default=0.0) or self.reached.get(rank, 0.0)


def survey(gang: Gang, before: Survey | None = None) -> Survey:
    """Asks every rank, all at once. `before`: the survey before this one."""
    given, failures = every_rank(gang, lambda rank: (rank.status(), rank.pending()))
    now = time.time()
    return Survey(
        statuses=[status for status, _ in given.values()],
        failures=failures,
        pending=_joined({rank: pending for rank, (_, pending) in given.items()}),
        reached={**(before.reached if before else {}), **dict.fromkeys(given, now)},
    )


def _joined(by_rank: Mapping[int, RankPending]) -> list[Pending]:
    """Joins what ranks say of the same operation, the oldest first."""
    parts: dict[tuple[Any, ...], dict[int, PendingOperation]] = {}
    for rank, pending in by_rank.items():
        for number, it in enumerate(pending.operations):
            # Without an id, nobody knows which parts belong together.
            key = (it.group, it.operation, it.operation_id or (rank, number))
            parts.setdefault(key, {})[rank] = it
    missing = {
        (it.group, it.operation, it.operation_id): it.missing
        for pending in by_rank.values()
        for it in pending.admissions
    }
    found = [
        Pending(
            operation=operation,
            group=group,
            operation_id=one.operation_id,
            waited=max(it.waited for it in its.values()),
            at={rank: it.phase for rank, it in its.items()},
            missing=missing.get((group, operation, one.operation_id)),
        )
        for (group, operation, _), its in parts.items()
        for one in [next(iter(its.values()))]
    ]
    return sorted(found, key=lambda it: -it.waited)


def clock(time_s: float) -> str:
    """A time of day, of seconds since 1970; of 0.0, none."""
    return time.strftime("%H:%M:%S", time.localtime(time_s)) if time_s else ""
