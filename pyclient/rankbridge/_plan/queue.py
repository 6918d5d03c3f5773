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
        told: What the ranks tell of it.
        ranks: Ranks of the group's members, in group order.
    """

    told: QueueDescription
    ranks: tuple[int, ...]

    @property
    def writer(self) -> int:
        """Rank in the gang of the writer."""
        return self.ranks[self.told.writer_rank_in_group]

    @property
    def readers(self) -> tuple[int, ...]:
        """Ranks in the gang of the readers."""
        return tuple(self.ranks[place] for place in self.told.reader_ranks_in_group)


class QueueCore:
    """What is known of a queue, for both fronts."""

    def __init__(self, made: MadeQueue) -> None:
        """Made by the gang."""
        self._made = made

    def __repr__(self) -> str:
        """Gives name, group and who writes and reads."""
        told = self._made.told
        ends = f"writer {told.writer_rank_in_group}, readers {list(told.reader_ranks_in_group)}"
        return f"{type(self).__name__}({told.name!r}, group {told.group!r}, {ends})"

    @property
    def description(self) -> QueueDescription:
        """All that the ranks told of it when it was made."""
        return self._made.told

    @property
    def name(self) -> str:
        """Its name, unique in its group."""
        return self._made.told.name

    @property
    def group(self) -> str:
        """Name of its group."""
        return self._made.told.group

    @property
    def ranks(self) -> tuple[int, ...]:
        """Ranks of the gang that are members of its group, in group order."""
        return self._made.ranks

    @property
    def writer_rank_in_group(self) -> int:
        """Who writes."""
        return self._made.told.writer_rank_in_group

    @property
    def reader_ranks_in_group(self) -> tuple[int, ...]:
        """Who reads, in ascending order."""
        return self._made.told.reader_ranks_in_group


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
