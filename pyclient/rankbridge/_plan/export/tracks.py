"""Tracks of a trace: on each, one thing happens at a time."""

from __future__ import annotations

from collections.abc import Hashable
from typing import NamedTuple


class Track(NamedTuple):
    """A track of a rank. `number`: from 1 among the rank's. `place`: from 0 among those of the same name."""

    number: int
    name: str
    place: int


class Tracks:
    """Gives each thing the first track of its name that is free. Things are placed in the order in which they begin."""

    def __init__(self) -> None:
        self._free: dict[tuple[Hashable, str], list[tuple[float, Track]]] = {}
        self._counts: dict[Hashable, int] = {}

    def place(self, rank: Hashable, name: str, begin: float, end: float) -> Track:
        """The track for something that lasts from `begin` to `end`."""
        tracks = self._free.setdefault((rank, name), [])
        for place, (free, track) in enumerate(tracks):
            if free <= begin:
                tracks[place] = end, track
                return track
        number = self._counts[rank] = self._counts.get(rank, 0) + 1
        track = Track(number, name, len(tracks))
        tracks.append((end, track))
        return track
