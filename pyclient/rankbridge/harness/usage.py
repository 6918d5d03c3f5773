"""What a process holds, as the kernel tells it."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass

# gRPC's own pool, which grows and shrinks with the load by itself.
_ELASTIC = frozenset({"event_engine"})
# Longer than `--data-timeout`: a thread that was in the backend when its generation ended is let go by then.
SETTLE_S = 40.0
_LOOK_AFTER_S = 0.002
_LOOK_EVERY_S = 0.05
# How the kernel names what ranks share with callers.
_SHARED = "/memfd:rankbridge-tensor"


@dataclass(frozen=True)
class Usage:
    """Threads without gRPC's elastic ones, file descriptors, resident memory in KB, and segments of shared memory.

    The descriptors of segments are not among the others: a rank keeps some segments, to use them again.
    """

    threads: int
    fds: int
    rss_kb: int
    segments: int = 0

    def exceeds(self, most: Usage) -> bool:
        """Whether it holds more threads, descriptors or segments."""
        return self.threads > most.threads or self.fds > most.fds or self.segments > most.segments


def usage(pid: int) -> Usage:
    """What a process holds now. Raises OSError when it is gone."""
    process = f"/proc/{pid}"
    names = [_text(f"{process}/task/{it}/comm").strip() for it in os.listdir(f"{process}/task")]
    fds = [f"{process}/fd/{it}" for it in os.listdir(f"{process}/fd")]
    # Each is open once more, by its mapping.
    shared = [inode for fd in fds if _target(fd).startswith(_SHARED) and (inode := _inode(fd))]
    with open(f"{process}/statm") as statm:
        pages = int(statm.read().split()[1])
    return Usage(
        threads=sum(bool(name) and name not in _ELASTIC for name in names),
        fds=len(fds) - len(shared),
        rss_kb=pages * os.sysconf("SC_PAGE_SIZE") // 1024,
        segments=len(set(shared)),
    )


def upper_bound(pid: int) -> Usage:
    """What a process holds at most, in a tenth of the time of `usage`. Raises OSError when it is gone.

    gRPC's elastic threads are among the threads, and segments among the descriptors; memory and segments are 0.
    """
    process = f"/proc/{pid}"
    return Usage(len(os.listdir(f"{process}/task")), len(os.listdir(f"{process}/fd")), 0)


def settled(pid: int, at_most: Usage, seconds: float = SETTLE_S) -> Usage:
    """What a process holds when that does not exceed `at_most`, or after `seconds`.

    Groups of a generation that is over are taken down in the background.
    """
    now: Usage | None = None

    def down() -> bool:
        nonlocal now
        now = usage(pid)
        return not now.exceeds(at_most)

    until(down, seconds)
    assert now is not None
    return now


# A thread or a descriptor may be gone while it is looked at.


def _text(path: str) -> str:
    with suppress(OSError), open(path) as file:
        return file.read()
    return ""


def _target(fd: str) -> str:
    with suppress(OSError):
        return os.readlink(fd)
    return ""


def _inode(fd: str) -> int:
    with suppress(OSError):
        return os.stat(fd).st_ino
    return 0


def until(true: Callable[[], bool], seconds: float) -> bool:
    """Looks until something is true; False: it was not within `seconds`."""
    deadline = time.monotonic() + seconds
    pause = _LOOK_AFTER_S
    while not true():
        if time.monotonic() >= deadline:
            return False
        time.sleep(pause)
        pause = min(2 * pause, _LOOK_EVERY_S)
    return True
