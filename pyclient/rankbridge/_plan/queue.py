"""A message queue as ranks tell of it. Nothing here asks a rank."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol


class NamedQueue(Protocol):
    """Whatever says which queue of which group is meant: a ``Queue``, an ``AsyncQueue``, a ``QueueDescription``."""

    @property
    def name(self) -> str:
        """Its name, unique in its group."""

    @property
    def group(self) -> str:
        """Name of its group."""


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueDescription:
    """A message queue. It belongs to its generation and to its group.

    Attributes:
        name: Its name, unique in its group.
        group: Name of its group.
        writer_rank_in_group: Who writes.
        reader_ranks_in_group: Who reads, in ascending order.
        shared_memory_ranks_in_group: Those of the readers that are given values in shared memory; the others are given
            them by the backend.
        max_chunk_bytes: Size of the room for one value, in bytes; a larger one travels on its own.
        max_chunks: Values that may be unread by the slowest reader.
    """

    name: str
    group: str
    writer_rank_in_group: int
    reader_ranks_in_group: tuple[int, ...]
    shared_memory_ranks_in_group: tuple[int, ...]
    max_chunk_bytes: int
    max_chunks: int


@dataclass(frozen=True, slots=True)
class MadeQueue:
    """A queue, and where its group's members are.

    Attributes:
        description: What the ranks say of it.
        ranks: Ranks of the group's members, in group order.
    """

    description: QueueDescription
    ranks: tuple[int, ...]

    @property
    def writer(self) -> int:
        """Rank in the gang of the writer."""
        return self.ranks[self.description.writer_rank_in_group]

    @property
    def readers(self) -> tuple[int, ...]:
        """Ranks in the gang of the readers."""
        return tuple(self.ranks[place] for place in self.description.reader_ranks_in_group)
