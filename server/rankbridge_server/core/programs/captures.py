"""What a member of a group has captured of its graphs, so that a replay is one launch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any
from weakref import WeakKeyDictionary

from ..coordinator import Captured

NOTHING = 0
REFUSED = 2**64 - 1


@dataclass(frozen=True, slots=True)
class Capture:
    """One of a graph. `number`: the same on all members, unlike that of every other in the group and generation.

    `filled`: the refs that get its results, in their order. `outcome`: an `Outcome`, that of every replay, since refs
    stay the same.
    """

    number: int
    captured: Captured
    filled: tuple[str, ...]
    outcome: Any


class Captures:
    """Those of one member in one generation, as long as their graphs. Used on the group's lane only."""

    def __init__(self) -> None:
        self._kept: WeakKeyDictionary[object, Capture | None] = WeakKeyDictionary()

    def number(self, graph: object) -> int:
        """Of the graph's capture; NOTHING: there is none yet; REFUSED: there never will be."""
        if graph not in self._kept:
            return NOTHING
        kept = self._kept[graph]
        return REFUSED if kept is None else kept.number

    def find(self, graph: object) -> Capture:
        """The graph's capture, which there is."""
        kept = self._kept[graph]
        if kept is None:
            raise LookupError("the graph was not captured")
        return kept

    def keep(self, graph: object, capture: Capture | None) -> None:
        """From now on this is the graph's; None: it is not to be captured again."""
        self._kept[graph] = capture

    def drop(self, graph: object) -> None:
        """Let go of the graph's, if there is one."""
        self._kept.pop(graph, None)
