"""A queue, as one rank sees it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class QueueView:
    """A queue as controllers see it. Ranks are ranks in the group.

    `shared_memory`: the readers that are given values in shared memory. `max_chunk_bytes`: room for one value there; a
    larger one travels on its own. `max_chunks`: values that may be unread by the slowest reader.
    """

    name: str
    group: str
    writer: int
    readers: tuple[int, ...]
    shared_memory: tuple[int, ...]
    max_chunk_bytes: int
    max_chunks: int
