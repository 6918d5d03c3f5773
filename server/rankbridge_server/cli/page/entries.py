"""Which operations of several ranks are one, and who came to it last."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rankbridge import RecordedOperation

KEPT = 20_000


@dataclass(slots=True)
class Entry:
    """An operation. `ranks`: where it was seen. `came`: when each rank came to it, of those where it has ended."""

    number: int
    ranks: set[int] = field(default_factory=set)
    came: dict[int, float] = field(default_factory=dict)


class Entries:
    """The operations that were seen last."""

    def __init__(self) -> None:
        self._made = 0
        self._kept: OrderedDict[Hashable, Entry] = OrderedDict()

    def of(self, rank: int, it: RecordedOperation) -> Entry:
        """The operation that this one of a rank is part of. Without an id, nobody knows which belong together."""
        name = it.operation_id or (rank, it.called)
        key = (it.generation, it.group, it.operation, name)
        entry = self._kept.get(key)
        if entry is None:
            self._made += 1
            entry = self._kept[key] = Entry(self._made)
            if len(self._kept) > KEPT:
                self._kept.popitem(last=False)
        entry.ranks.add(rank)
        return entry
