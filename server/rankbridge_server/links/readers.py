"""Who reads a party's links: its lane while that waits for a verdict, the links thread otherwise."""

from __future__ import annotations

import math
import select
import threading
import time
from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import Protocol

# A lane that has stayed away for this long has left its links to the links thread.
TICK_S = 0.01


class Turn:
    """Whose turn it is. Read and changed under the party's lock.

    `lane`: the thread that reads while it waits; 0: none does. `watched`: the links thread is told what there is to
    read. `ended`: when a lane last had its verdict.
    """

    __slots__ = ("ended", "lane", "watched")

    def __init__(self) -> None:
        self.lane = 0
        self.watched = False
        self.ended = 0.0

    def is_mine(self) -> bool:
        """Whether this thread is the one to read."""
        return self.lane in (0, threading.get_ident())


class ReadableLinks(Protocol):
    """A party, as far as the reading of its links goes."""

    @property
    def lock(self) -> threading.RLock:
        """Held by whoever reads, for as long as it acts on what it read."""
        ...

    @property
    def turn(self) -> Turn:
        """Whose turn it is to read."""
        ...

    def filenos(self) -> Iterable[int]:
        """The file descriptors of its links."""
        ...


class Readers:
    """What the links thread reads: an epoll set.

    To take links out of the set and put them back costs as much as the messages of an operation. A lane that comes
    again and again therefore leaves them out; the links thread looks every `TICK_S` whether it has stopped coming.
    """

    def __init__(self) -> None:
        self._epoll = select.epoll()
        self._left: set[ReadableLinks] = set()
        # Whether the links thread looks at what is left, or has been woken to.
        self._asked = False

    def add(self, fileno: int) -> None:
        """Tell when there is something to read here."""
        with suppress(FileExistsError):
            self._epoll.register(fileno, select.EPOLLIN)

    def drop(self, fileno: int) -> None:
        """Tell nothing of it any more. It may be gone already."""
        with suppress(OSError, ValueError):
            self._epoll.unregister(fileno)

    def watch(self, group_links: ReadableLinks) -> None:
        """Tell when there is something to read on any link of the party, once no lane reads it."""
        with group_links.lock:
            if not group_links.turn.lane:
                self._watch(group_links)

    def take(self, group_links: ReadableLinks) -> None:
        """A lane begins to read; it holds the party's lock."""
        group_links.turn.lane = threading.get_ident()
        if group_links.turn.watched:
            group_links.turn.watched = False
            for fileno in group_links.filenos():
                self.drop(fileno)

    def give_back(self, group_links: ReadableLinks) -> bool:
        """A lane has its verdict; it holds the party's lock. True: the links thread must be woken, and will look."""
        turn = group_links.turn
        before, turn.ended, turn.lane = turn.ended, time.monotonic(), 0
        if turn.ended - before > TICK_S:
            self._watch(group_links)
            return False
        self._left.add(group_links)
        asked, self._asked = self._asked, True
        return not asked

    def wait(self, timeout: float) -> Sequence[int]:
        """Where there is something to read; waits `timeout` seconds at most, or without end. For the links thread."""
        # In this order: a lane that leaves its links after this look finds that nobody has been asked.
        self._asked = False
        if self._left:
            self._asked = True
            timeout = min(timeout, TICK_S)
        found = self._epoll.poll(None if timeout == math.inf else max(0.0, timeout))
        for group_links in list(self._left):
            self._look_at(group_links)
        return [fileno for fileno, _ in found]

    def close(self) -> None:
        """Give the set back."""
        self._epoll.close()

    def _look_at(self, group_links: ReadableLinks) -> None:
        # Who holds the lock is busy with the links; there is a next look.
        if not group_links.lock.acquire(blocking=False):
            return
        try:
            if time.monotonic() - group_links.turn.ended <= TICK_S:
                return
            self._left.discard(group_links)
            # A lane that has been reading for this long gives the links back to the set by itself.
            if not group_links.turn.lane:
                self._watch(group_links)
        finally:
            group_links.lock.release()

    def _watch(self, group_links: ReadableLinks) -> None:
        group_links.turn.watched = True
        # Closed: nobody reads any more.
        with suppress(ValueError):
            for fileno in group_links.filenos():
                self.add(fileno)
