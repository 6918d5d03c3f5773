"""The route of a gang call."""

from __future__ import annotations

from dataclasses import dataclass

from ..errors import Place
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

    def place(self, rank: int, operation_id: str) -> Place:
        """The place of a failure of the call on a member."""
        group, generation = self.group.name, self.generation.number
        return Place(
            rank=rank, group=group, operation="call", operation_id=operation_id, generation=generation
        )
