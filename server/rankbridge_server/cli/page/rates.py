"""Rates of the last seconds: how much each group and rank does, and which rank comes last."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable, Mapping
from typing import Any

from ..activity import LOOKED_AT, bytes_of

WINDOW_S = 5.0


class Rates:
    """Counts what ends. Times are seconds of a steady clock."""

    def __init__(self, now: float) -> None:
        self._began = now
        self._ended: dict[tuple[str, int], deque[tuple[float, int, int]]] = {}
        self._last: dict[str, deque[tuple[int, float]]] = {}
        self._sizes: dict[str, int] = {}

    def ended(self, now: float, rank: int, operations: Iterable[tuple[str, str]]) -> None:
        """A rank has ended operations, of each its group and its contract."""
        counts = Counter[str]()
        sizes = Counter[str]()
        for group, contract in operations:
            counts[group] += 1
            sizes[group] += self._bytes(contract)
        for group, count in counts.items():
            self._ended.setdefault((group, rank), deque()).append((now, count, sizes[group]))

    def came(self, group: str, came: Mapping[int, float]) -> None:
        """All members of a group have come to an operation, each at its time."""
        last = max(came, key=lambda rank: came[rank])
        self._last.setdefault(group, deque(maxlen=LOOKED_AT)).append((last, came[last] - min(came.values())))

    def groups(self, now: float) -> dict[str, dict[str, Any]]:
        """By group: operations and bytes of a member's tensors in a second, and who came last how often."""
        found: dict[str, dict[str, Any]] = {}
        for (group, _), (operations, size) in self._per_second(now).items():
            row = found.setdefault(group, {"operations": 0.0, "bytes": 0.0})
            # Each member does its part of the same ones.
            row["operations"] = max(row["operations"], operations)
            row["bytes"] = max(row["bytes"], size)
        for group, came in self._last.items():
            times = Counter(rank for rank, _ in came)
            ((last, count),) = times.most_common(1)
            behind = [it for rank, it in came if rank == last]
            found.setdefault(group, {"operations": 0.0, "bytes": 0.0}).update(
                last=last, last_in=count, of=len(came), behind=sum(behind) / len(behind)
            )
        return found

    def ranks(self, now: float) -> dict[int, float]:
        """By rank: operations in a second."""
        found = Counter[int]()
        for (_, rank), (operations, _) in self._per_second(now).items():
            found[rank] += operations  # type: ignore[assignment]
        return dict(found)

    def _per_second(self, now: float) -> dict[tuple[str, int], tuple[float, float]]:
        seconds = min(WINDOW_S, max(now - self._began, 0.5))
        found = {}
        for key, ended in list(self._ended.items()):
            while ended and ended[0][0] < now - WINDOW_S:
                ended.popleft()
            if not ended:
                del self._ended[key]
                continue
            found[key] = (sum(it[1] for it in ended) / seconds, sum(it[2] for it in ended) / seconds)
        return found

    def _bytes(self, contract: str) -> int:
        if contract not in self._sizes:
            if len(self._sizes) > 4096:
                self._sizes.clear()
            self._sizes[contract] = bytes_of(contract) or 0
        return self._sizes[contract]
