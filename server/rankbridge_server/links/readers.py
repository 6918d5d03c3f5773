"""The readers of a group's links: its lane while it waits, the links thread otherwise."""

from __future__ import annotations

import math
import select
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress

# A lane that has not read for this long has left its links to the links thread.
TICK_S = 0.01


class Turn:
    """Which thread reads a group's links. Read and changed under `lock`, which a reader holds while it acts on frames.

    `filenos`: gives the file descriptors of the links. `lane`: id of the thread that reads while it waits; 0: none.
    `watched`: the links thread polls the links. `ended`: when a lane last got its verdict.
    """

    __slots__ = ("ended", "filenos", "lane", "lock", "watched")

    def __init__(self, filenos: Callable[[], Iterable[int]]) -> None:
        self.lock = threading.RLock()
        self.filenos = filenos
        self.lane = 0
        self.watched = False
        self.ended = 0.0

    def is_mine(self) -> bool:
        """Whether this thread may read."""
        return self.lane in (0, threading.get_ident())


class Readers:
    """The epoll set of the links thread.

    Removing links from the set and adding them again costs as much as the frames of an operation. A lane that waits
    again and again therefore leaves them out; the links thread checks every `TICK_S` whether the lane has stopped.
    """

    def __init__(self) -> None:
        self._epoll = select.epoll()
        self._left: set[Turn] = set()
        # Whether the links thread checks `_left`, or has been woken to do so.
        self._asked = False

    def add(self, fileno: int) -> None:
        """Adds a file descriptor to the set."""
        with suppress(FileExistsError):
            self._epoll.register(fileno, select.EPOLLIN)

    def drop(self, fileno: int) -> None:
        """Removes a file descriptor, which may be closed already."""
        with suppress(OSError, ValueError):
            self._epoll.unregister(fileno)

    def watch(self, turn: Turn) -> None:
        """Adds a group's links to the set, unless a lane reads them now."""
        with turn.lock:
            if not turn.lane:
                self._watch(turn)

    def attend(self, turn: Turn) -> None:
        """Lets the links thread read at once what comes, unless a lane reads. The caller holds the links' lock."""
        if not turn.lane and not turn.watched:
            self._watch(turn)

    def take(self, turn: Turn) -> None:
        """Gives the links to the calling lane, which holds their lock."""
        turn.lane = threading.get_ident()
        if turn.watched:
            turn.watched = False
            for fileno in turn.filenos():
                self.drop(fileno)

    def give_back(self, turn: Turn, *, is_awaited: bool = False) -> bool:
        """Takes the links back from a lane, which holds their lock. Returns whether to wake the links thread.

        `is_awaited`: somebody waits for an answer that is to come: the links thread must read it at once.
        """
        before, turn.ended, turn.lane = turn.ended, time.monotonic(), 0
        if is_awaited or turn.ended - before > TICK_S:
            self._watch(turn)
            return False
        self._left.add(turn)
        asked, self._asked = self._asked, True
        return not asked

    def wait(self, timeout: float) -> Sequence[int]:
        """The readable file descriptors. Waits `timeout` seconds at most. Called by the links thread."""
        # In this order: a lane that leaves its links after this check finds `_asked` unset, and wakes this thread.
        self._asked = False
        if self._left:
            self._asked = True
            timeout = min(timeout, TICK_S)
        found = self._epoll.poll(None if timeout == math.inf else max(0.0, timeout))
        for turn in list(self._left):
            self._look_at(turn)
        return [fileno for fileno, _ in found]

    def close(self) -> None:
        """Closes the set."""
        self._epoll.close()

    def _look_at(self, turn: Turn) -> None:
        # The thread with the lock is busy with the links; the next check comes soon.
        if not turn.lock.acquire(blocking=False):
            return
        try:
            if time.monotonic() - turn.ended <= TICK_S:
                return
            self._left.discard(turn)
            # A lane that reads for longer gives the links back to the set by itself.
            if not turn.lane:
                self._watch(turn)
        finally:
            turn.lock.release()

    def _watch(self, turn: Turn) -> None:
        turn.watched = True
        # The set may be closed: then no thread reads any more.
        with suppress(ValueError):
            for fileno in turn.filenos():
                self.add(fileno)
