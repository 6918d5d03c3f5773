"""A queue as one rank sees it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class QueueView:
    """A queue as controllers see it. Ranks are ranks in the group.

    `shared_memory`: the readers that get values in shared memory. `max_chunk_bytes`: size of one chunk there; a larger
    value gets a file of its own. `max_chunks`: values that the slowest reader may leave unread.
    """

    name: str
    group: str
    writer: int
    readers: tuple[int, ...]
    shared_memory: tuple[int, ...]
    max_chunk_bytes: int
    max_chunks: int
