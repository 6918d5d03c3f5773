"""What a test leaves behind in the ranks of its gang."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress

import numpy as np

from rankbridge import Gang, RankStatus
from rankbridge.harness.usage import Usage, settled, upper_bound, usage

_SETTLE_S = 2.0
_CALL_TIMEOUT_S = 30.0
# Threads that a rank's server makes for calls that are there at once, and uses again.
_THREADS = 8
# Of the interpreter or of gRPC, with some first use.
_DESCRIPTORS = 1
# Segments of shared memory, which ranks keep to use them again.
_ANY = 1 << 30


def warm_up(client: Gang) -> None:
    """Makes the ranks of a new gang open what they open with the first call, and keep."""
    with client.session():
        refs = client.put([np.zeros(1, np.float32)] * len(client), timeout=_CALL_TIMEOUT_S)
        client.get(client.all_reduce(refs, timeout=_CALL_TIMEOUT_S), timeout=_CALL_TIMEOUT_S)


class Holdings:
    """What the processes of gangs hold while a test's group is there, and no test has left anything.

    The least that was seen counts.
    """

    def __init__(self) -> None:
        """Knows no process."""
        self._least: dict[int, Usage] = {}

    def look(self, pids: Iterable[int]) -> None:
        """Looks at processes that are new, as far as they are there and may be looked into."""
        for pid in set(pids) - self._least.keys():
            with suppress(OSError):
                self._least[pid] = usage(pid)

    def grown(self, pids: Mapping[int, int]) -> list[str]:
        """Says what ranks hold that is more. It is said once; new processes hold nothing more.

        Waits until the group of the test before, which ranks let go of in the background, is gone.

        Args:
            pids: The process of each rank.
        """
        said = []
        for pid in sorted(set(pids.values()) & self._least.keys()):
            then = self._least[pid]
            most = Usage(then.threads + _THREADS, then.fds + _DESCRIPTORS, 0, _ANY)
            try:
                now = upper_bound(pid)
                if now.exceeds(most):
                    now = settled(pid, most, _SETTLE_S)
            except OSError:
                continue
            ranks = [rank for rank, it in pids.items() if it == pid]
            where = f"rank {ranks[0]}" if len(ranks) == 1 else f"ranks {ranks}"
            if now.fds > most.fds:
                said.append(f"{now.fds - then.fds} open descriptors in {where}: a client that is not closed?")
            if now.threads > most.threads:
                said.append(f"{now.threads - then.threads} threads in {where}")
            if now.exceeds(most):
                self._least[pid] = now
            else:
                self._least[pid] = Usage(min(now.threads, then.threads), min(now.fds, then.fds), 0)
        return said


def free_shared_refs(client: Gang, statuses: Iterable[RankStatus]) -> list[str]:
    """Says how many refs there are in the ranks' shared sessions, which were empty, and frees them."""
    counts = {status.rank: sum(it.refs for it in status.sessions if not it.session_id) for status in statuses}
    left = [f"{count} refs in the shared session of rank {rank}" for rank, count in counts.items() if count]
    if left:
        for rank in client:
            rank.release(rank.list_refs())
    return left
