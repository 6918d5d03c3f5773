"""What a member of a group has captured of its graphs, so that a replay is one launch."""

from __future__ import annotations

from weakref import WeakKeyDictionary

from ..coordinator import Captured

NOTHING = 0
"""The number of a graph that was not captured yet."""
REFUSED = 2**64 - 1
"""That of one that cannot be captured in this generation."""

Captures = WeakKeyDictionary[object, tuple[int, Captured | None]]
"""By graph: the capture's number and the capture, as long as the graph. Used on the group's lane only.

The number is the same on all members, unlike that of every other capture in the group and generation.
"""
