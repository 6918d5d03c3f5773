"""Where ranks are, for the report of a test that failed: their stacks, as `rankbridge doctor` reads them."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rankbridge_server.doctor.evidence import Thread

_AT_ONCE = 16
_DEEPEST = 12


def stacks_of(pids: Mapping[int, int]) -> str:
    """Gives the stacks of threads that run code of the user's own, of each rank; else says that there are none.

    Args:
        pids: The process of each rank.
    """
    try:
        from rankbridge_server.job.outside import stacks
    except ImportError:
        return "not read: rankbridge[server] is not installed where the tests run"
    processes = sorted(set(pids.values()))
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        read = dict(zip(processes, pool.map(lambda pid: stacks.read(pid, {}), processes), strict=True))
    troubles = {it.trouble for it in read.values() if it.trouble}
    if len(troubles) == 1 and all(it.trouble for it in read.values()):
        return troubles.pop()
    lines = []
    for rank, pid in sorted(pids.items()):
        # The main thread of a rank waits for the agent that started it.
        threads = [it for it in read[pid].threads if it.os_id != pid and _is_users(it)]
        said = [line for it in threads for line in _described(it)]
        lines += [
            f"rank {rank}: {read[pid].trouble or ('' if said else 'no code of yours runs')}".rstrip(),
            *said,
        ]
    return "\n".join(lines)


def _described(thread: Thread) -> list[str]:
    frames = [f"    {it.name} ({it.file}:{it.line})" for it in thread.frames[:_DEEPEST]]
    more = len(thread.frames) - len(frames)
    return [f"  thread {thread.name}", *frames, *([f"    and {more} more"] if more else [])]


def _is_users(thread: Thread) -> bool:
    from rankbridge_server.core.functions.raised import is_users_file

    return any(is_users_file(it.file) for it in thread.frames)
