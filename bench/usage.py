"""What a process and all that descend from it have used: CPU and memory. Linux only."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path


def tree(pid: int) -> list[int]:
    """A process and all that descend from it, as far as they are alive."""
    return list(_walk(pid))


def _walk(pid: int) -> Iterator[int]:
    yield pid
    # One that ended meanwhile has no children any more.
    with suppress(OSError):
        for task in Path(f"/proc/{pid}/task").iterdir():
            with suppress(OSError):
                for child in (task / "children").read_text().split():
                    yield from _walk(int(child))


def cpu_seconds(pids: list[int]) -> float:
    """CPU seconds that these processes have used since they began, all their threads, to the nanosecond."""
    return sum(_cpu_seconds(pid) for pid in pids)


def _cpu_seconds(pid: int) -> float:
    # As clock_getcpuclockid(3) makes the clock of a process: the scheduler's count.
    try:
        return time.clock_gettime((~pid << 3) | 2)
    except OSError:
        return 0.0


def available_bytes() -> int:
    """Memory of this machine that can be had without swapping."""
    for line in Path("/proc/meminfo").read_text().splitlines():
        if line.startswith("MemAvailable:"):
            return int(line.split()[1]) * 1024
    return 0


def peak_bytes(pids: list[int]) -> int:
    """Sum of the largest resident sizes that these processes have had. What they share counts once for each."""
    return sum(_peak_bytes(pid) for pid in pids)


def _peak_bytes(pid: int) -> int:
    with suppress(OSError):
        for line in Path(f"/proc/{pid}/status").read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024
    return 0
