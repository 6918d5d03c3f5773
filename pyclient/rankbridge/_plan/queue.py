"""A message queue as ranks tell of it. Nothing here asks a rank."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from rankbridge.v1 import queue_service_pb2


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


class QueueCore:
    """What is known of a queue, for both fronts."""

    def __init__(self, made: MadeQueue) -> None:
        """Made by the gang."""
        self._made = made

    def __repr__(self) -> str:
        """Gives name, group and who writes and reads."""
        description = self._made.description
        ends = f"writer {description.writer_rank_in_group}, readers {list(description.reader_ranks_in_group)}"
        return f"{type(self).__name__}({description.name!r}, group {description.group!r}, {ends})"

    @property
    def description(self) -> QueueDescription:
        """All that the ranks said of it when it was made."""
        return self._made.description

    @property
    def name(self) -> str:
        """Its name, unique in its group."""
        return self._made.description.name

    @property
    def group(self) -> str:
        """Name of its group."""
        return self._made.description.group

    @property
    def ranks(self) -> tuple[int, ...]:
        """Ranks of the gang that are members of its group, in group order."""
        return self._made.ranks

    @property
    def writer_rank_in_group(self) -> int:
        """Who writes."""
        return self._made.description.writer_rank_in_group

    @property
    def reader_ranks_in_group(self) -> tuple[int, ...]:
        """Who reads, in ascending order."""
        return self._made.description.reader_ranks_in_group


def queue_from_wire(queue: queue_service_pb2.Queue) -> QueueDescription:
    """Reads a queue."""
    return QueueDescription(
        name=queue.name,
        group=queue.group,
        writer_rank_in_group=queue.writer_rank_in_group,
        reader_ranks_in_group=tuple(queue.reader_ranks_in_group),
        shared_memory_ranks_in_group=tuple(queue.shared_memory_ranks_in_group),
        max_chunk_bytes=queue.max_chunk_bytes,
        max_chunks=queue.max_chunks,
    )
