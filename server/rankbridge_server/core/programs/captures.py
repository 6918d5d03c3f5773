"""What a member of a group has captured of its graphs, so that a replay is one launch."""

from __future__ import annotations

from weakref import WeakKeyDictionary

from ..coordinator import Captured

NOTHING = 0
REFUSED = 2**64 - 1


class Captures:
    """Those of one member in one generation, as long as their graphs. Used on the group's lane only.

    Each has a number: the same on all members, unlike that of every other in the group and generation.
    """

    def __init__(self) -> None:
        self._kept: WeakKeyDictionary[object, tuple[int, Captured | None]] = WeakKeyDictionary()

    def number(self, graph: object) -> int:
        """Of the graph's capture; NOTHING: there is none yet; REFUSED: there never will be."""
        return self._kept.get(graph, (NOTHING, None))[0]

    def find(self, graph: object) -> Captured:
        """The graph's capture. Raises LookupError when there is none."""
        captured = self._kept[graph][1]
        if captured is None:
            raise LookupError("the graph was not captured")
        return captured

    def keep(self, graph: object, number: int, captured: Captured | None) -> None:
        """Replace the graph's capture; None: it is not to be captured again."""
        self._kept[graph] = (REFUSED if captured is None else number, captured)

    def drop(self, graph: object) -> None:
        """Forget the graph's capture, if there is one."""
        self._kept.pop(graph, None)
