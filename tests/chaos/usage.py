"""What a process holds, as the kernel tells it."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

# gRPC's own pool, which grows and shrinks with the load by itself.
_ELASTIC = frozenset({"event_engine"})
# Longer than `--data-timeout`: a thread that was in the backend when its generation ended is let go by then.
SETTLE_S = 40.0
_LOOK_EVERY_S = 0.05


@dataclass(frozen=True)
class Usage:
    """Threads, file descriptors, and resident memory in KB. Without gRPC's elastic threads."""

    threads: int
    fds: int
    rss_kb: int


def usage(pid: int) -> Usage:
    """What a process holds now. Raises OSError when it is gone."""
    process = Path("/proc", str(pid))
    names: list[str] = []
    for task in (process / "task").iterdir():
        # It may end while it is looked at.
        with suppress(OSError):
            names.append((task / "comm").read_text().strip())
    pages = int((process / "statm").read_text().split()[1])
    return Usage(
        threads=sum(name not in _ELASTIC for name in names),
        fds=len(os.listdir(process / "fd")),
        rss_kb=pages * os.sysconf("SC_PAGE_SIZE") // 1024,
    )


def settled(pid: int, at_most: Usage, seconds: float = SETTLE_S) -> Usage:
    """What a process holds when it is down to `at_most` threads and descriptors, or after `seconds`.

    Groups of a generation that is over are taken down in the background.
    """

    def down() -> bool:
        it = usage(pid)
        return it.threads <= at_most.threads and it.fds <= at_most.fds

    until(down, seconds)
    return usage(pid)


def until(true: Callable[[], bool], seconds: float) -> bool:
    """Looks until something is true; False: it was not within `seconds`."""
    deadline = time.monotonic() + seconds
    while not true():
        if time.monotonic() >= deadline:
            return False
        time.sleep(_LOOK_EVERY_S)
    return True
