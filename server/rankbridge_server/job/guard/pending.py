"""What this rank waits for in guard, on each of its threads."""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from ...core.activity import Activity, Doing
from ...core.functions.raised import place_of
from .crossings import PATIENCE_S, Wait

_OWN_THREADS = ("guard:", "links:")


class Pending:
    """A call that waits for other ranks.

    `operation`, `group`, `site`: of the call, for people. `wait`: what it waits for, by the number of this wait; None:
    that may come from several ranks. `withdraw`: ends it, unless the others have come meanwhile.
    """

    def __init__(
        self,
        attempt: int,
        operation: str,
        group: str,
        site: str,
        wait: Callable[[int], Wait | None],
        withdraw: Callable[[], None],
    ) -> None:
        self.attempt = attempt
        self.operation = operation
        self.group = group
        self.site = site
        self.wait = wait
        self.withdraw = withdraw
        self.since = time.monotonic()
        self.crossing = ""
        self.circle: Sequence[int] = ()


class AllPending:
    """What the threads of this rank wait for."""

    def __init__(self) -> None:
        self._attempts = itertools.count(1)
        self._by_thread: dict[int, Pending] = {}
        self._idle_since = time.monotonic()

    @contextmanager
    def waiting(
        self,
        operation: str,
        group: str,
        site: str,
        wait: Callable[[int], Wait | None],
        withdraw: Callable[[], None],
    ) -> Iterator[Pending]:
        """This thread waits."""
        thread = threading.get_ident()
        pending = self._by_thread[thread] = Pending(
            next(self._attempts), operation, group, site, wait, withdraw
        )
        try:
            yield pending
        finally:
            del self._by_thread[thread]
            self._idle_since = time.monotonic()

    def activity(self, _group: str) -> Activity:
        """What this rank does."""
        for pending in list(self._by_thread.values()):
            return Activity(
                doing=Doing.WAITING,
                seconds=time.monotonic() - pending.since,
                group=pending.group,
                operation=pending.operation,
                site=pending.site,
            )
        seconds = time.monotonic() - self._idle_since
        return Activity(doing=Doing.IDLE, seconds=seconds, where=place_of(threading.main_thread().ident or 0))

    def only(self) -> Wait | None:
        """The one thing for which this rank waits. With another thread, it may yet come to what others wait for."""
        all_of_them = list(self._by_thread.items())
        if len(all_of_them) != 1:
            return None
        ((thread, pending),) = all_of_them
        if time.monotonic() - pending.since < PATIENCE_S or not _is_alone(thread):
            return None
        return pending.wait(pending.attempt)

    def cross(self, wait: Wait, circle: Sequence[int], text: str) -> None:
        """Ends a wait that will never end by itself: it is in a circle of waits."""
        for pending in list(self._by_thread.values()):
            if pending.attempt == wait.attempt:
                pending.circle, pending.crossing = circle, text
                pending.withdraw()


def _is_alone(thread: int) -> bool:
    """Whether no other thread runs Python in this process, but guard's own."""
    return all(it.ident == thread or it.name.startswith(_OWN_THREADS) for it in threading.enumerate())
