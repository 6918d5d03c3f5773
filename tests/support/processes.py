"""Stopping processes, and watching them end."""

from __future__ import annotations

import os
import select
import signal
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress

from tests.support.proc import thread_states
from tests.support.waiting import until


class Watched:
    """Processes that were alive when the watch began."""

    def __init__(self, pidfds: dict[int, int]) -> None:
        self._pidfds = pidfds

    def alive_after(self, seconds: float) -> list[int]:
        """The pids of those that have not ended within `seconds`."""
        left = dict(self._pidfds)
        poll = select.poll()
        for fd in left.values():
            poll.register(fd, select.POLLIN)
        by_fd = {fd: pid for pid, fd in left.items()}
        while left:
            events = poll.poll(seconds * 1000)
            if not events:
                return sorted(left)
            for fd, _ in events:
                poll.unregister(fd)
                del left[by_fd[fd]]
        return []


@contextmanager
def watched(pids: Sequence[int]) -> Iterator[Watched]:
    """Watch these processes, whoever started them."""
    with ExitStack() as stack:
        pidfds = {}
        for pid in pids:
            # One that has ended since somebody found it is not to be watched any more.
            with suppress(ProcessLookupError):
                pidfds[pid] = os.pidfd_open(pid)
                stack.callback(os.close, pidfds[pid])
        yield Watched(pidfds)


def stop(pid: int) -> None:
    """Stops a process, and returns when none of its threads runs. One of them gets the signal, and stops the others."""
    os.kill(pid, signal.SIGSTOP)
    until(lambda: thread_states(pid) == {"T"})
