"""The captures of a member's graphs: with a capture, a replay is one launch."""

from __future__ import annotations

from weakref import WeakKeyDictionary

from ..coordinator import Captured

NOTHING = 0
"""The number of a graph that has no capture yet."""
REFUSED = 2**64 - 1
"""The number of a graph that cannot be captured in this generation."""

Captures = WeakKeyDictionary[object, tuple[int, Captured | None]]
"""Each graph's capture and its number, kept as long as the graph. Only the group's lane uses it.

The number is equal on all members, and unique among the captures in the group and generation.
"""
