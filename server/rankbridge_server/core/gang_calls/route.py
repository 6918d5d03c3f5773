"""The route of a gang call."""

from __future__ import annotations

from dataclasses import dataclass

from ..generation import Generation
from ..groups.group import Group


@dataclass(frozen=True, slots=True)
class Route:
    """The generation and group of a gang call, and whether this rank leads the group."""

    generation: Generation
    group: Group

    @property
    def leader(self) -> int:
        """The leader's rank in the gang."""
        return self.group.description.ranks[0]

    @property
    def is_here(self) -> bool:
        """Whether this rank leads the group."""
        return self.leader == self.generation.rank
