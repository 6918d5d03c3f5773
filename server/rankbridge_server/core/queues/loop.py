"""A thread that owns its file descriptors and state; other threads hand it actions."""

from __future__ import annotations

import math
import select
import threading
import time
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterable

from ..waker import Waker


class Loop(ABC):
    """A thread that runs actions, and `look` when a file descriptor is readable or something is due.

    Only `call_soon` and `finished` are called by other threads, so the rest needs no lock.
    """

    def __init__(self, name: str, waker: Waker) -> None:
        self._waker = waker
        self._lock = threading.Lock()
        self._actions: deque[Callable[[], None]] = deque()
        self._woken = False
        self._open = True
        self._going = True
        self._thread = threading.Thread(target=self._run, name=f"queue:{name}", daemon=True)

    @property
    def finished(self) -> bool:
        """Whether the thread has ended and released everything."""
        return not self._open

    def start(self) -> None:
        """Starts the thread."""
        self._thread.start()

    def join(self, timeout: float) -> None:
        """Wait until the thread has ended, at most `timeout` seconds."""
        self._thread.join(timeout)

    def call_soon(self, action: Callable[[], None]) -> bool:
        """Queues an action for the thread; returns False when the thread has ended. Never waits."""
        with self._lock:
            if not self._open:
                return False
            self._actions.append(action)
            if not self._woken:
                self._woken = True
                self._waker.wake()
            return True

    def finish(self) -> None:
        """Ends the thread after this round."""
        self._going = False

    @abstractmethod
    def interests(self) -> Iterable[int]:
        """File descriptors to look at when they are readable."""

    @abstractmethod
    def due(self) -> float | None:
        """When `look` is due, by the monotonic clock; None: not while nothing changes."""

    @abstractmethod
    def look(self) -> None:
        """Acts on what has changed. Called in every round."""

    @abstractmethod
    def fault(self, error: Exception) -> None:
        """Called when an internal fault has ended the loop: answers all who wait for it."""

    @abstractmethod
    def dispose(self) -> None:
        """Releases everything. Called last."""

    def _run(self) -> None:
        try:
            while self._going:
                self._wait()
                # All actions come before `look`, so that a withdrawn call is not begun.
                while taken := self._taken():
                    self._act(taken)
                self.look()
        except Exception as error:
            self.fault(error)
        with self._lock:
            rest = list(self._actions)
            self._actions.clear()
        try:
            # They find the loop ended.
            self._act(rest)
        finally:
            self.dispose()
            with self._lock:
                self._open = False
                late = list(self._actions)
                self._actions.clear()
                self._waker.close()
            self._act(late)

    @staticmethod
    def _act(actions: Iterable[Callable[[], None]]) -> None:
        for action in actions:
            action()

    def _wait(self) -> None:
        poll = select.poll()
        poll.register(self._waker, select.POLLIN)
        for fd in self.interests():
            poll.register(fd, select.POLLIN)
        due = self.due()
        # Rounded up: a wait of 0 ms would return before the due time, again and again.
        patience = None if due is None else max(0, math.ceil((due - time.monotonic()) * 1000))
        poll.poll(patience)

    def _taken(self) -> list[Callable[[], None]]:
        with self._lock:
            if self._woken:
                self._waker.clear()
                self._woken = False
            taken = list(self._actions)
            self._actions.clear()
        return taken
