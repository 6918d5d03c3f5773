"""Where a gang call goes."""

from __future__ import annotations

from dataclasses import dataclass

from ..generation import Generation
from ..groups.group import Group


@dataclass(frozen=True, slots=True)
class Route:
    """Where a gang call goes: its generation, its group, and whether this rank leads it."""

    generation: Generation
    group: Group

    @property
    def leader(self) -> int:
        """Rank in the gang."""
        return self.group.description.ranks[0]

    @property
    def is_here(self) -> bool:
        """Whether this rank leads."""
        return self.leader == self.generation.rank
