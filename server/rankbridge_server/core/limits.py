"""The limits of one rank."""

from __future__ import annotations

import os
from dataclasses import dataclass

MAX_WORLD_SIZE = 65_536
MAX_GROUPS = 4_096
"""Groups of one generation."""
MAX_GENERATIONS_AHEAD = 1 << 32
"""How far the number of a generation may be above the last: there are always numbers left."""
MAX_SESSIONS = 4_096
"""Open sessions of one rank."""
MAX_REASON = 4_096
"""Characters of a text that another rank or a controller gives as a reason. What is more is cut off."""


def _part_of_memory(parts: int) -> int:
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // parts


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Limits of one rank. A call that exceeds one fails with RESOURCE_EXHAUSTED and changes nothing.

    `max_bytes`: bytes of all tensors; 0: half of the host's memory. `max_refs`: refs of all sessions. `max_pending`:
    operations accepted and not answered yet. `max_session_bytes`, `max_session_refs`: of one session; 0: no limit.
    `max_shared_bytes`: bytes of memory shared with callers on the host; 0: an eighth of its memory, at most
    1 GiB. `max_record`: operations in the record; 0: none.
    """

    max_bytes: int = 0
    max_refs: int = 1_000_000
    max_pending: int = 4096
    max_session_bytes: int = 0
    max_session_refs: int = 0
    max_shared_bytes: int = 0
    max_record: int = 10_000

    def __post_init__(self) -> None:
        if not self.max_bytes:
            object.__setattr__(self, "max_bytes", _part_of_memory(2))
        if not self.max_shared_bytes:
            object.__setattr__(self, "max_shared_bytes", min(_part_of_memory(8), 1 << 30))
        session = min(self.max_session_bytes, self.max_session_refs, self.max_shared_bytes, self.max_record)
        if min(self.max_bytes, self.max_refs, self.max_pending) < 1 or session < 0:
            raise ValueError(f"limits must be positive: {self}")
