"""Threads that enter grpcio in the place of the one that signals interrupt."""

from __future__ import annotations

import _thread
import threading
from collections import deque
from collections.abc import Callable
from queue import SimpleQueue
from typing import Any, Generic, TypeVar

from rankbridge._transport.threads.bell import Bell

T = TypeVar("T")


def begin_thread(run: Callable[..., object], *args: object) -> None:
    """Begins a thread that nobody waits for, and that ends with the process. Its start cannot be interrupted halfway.

    That of a ``threading.Thread`` can: it waits for the thread, with a lock that the thread needs.
    """
    _thread.start_new_thread(run, args)


class Result(Generic[T]):
    """What a function will give. May be waited for by a thread that signals interrupt."""

    def __init__(self, work: Callable[[], T]) -> None:
        """Nothing has come."""
        self._work = work
        self._value: T | None = None
        self._error: BaseException | None = None
        self._bell = Bell()

    def done(self) -> bool:
        """Says whether it has come."""
        return self._bell.rung

    def wait(self, timeout: float | None = None) -> T:
        """Waits for it, so many seconds at most, and gives it, or raises what the function raised.

        Raises:
            TimeoutError: It has not come.
        """
        if not self._bell.wait(timeout):
            raise TimeoutError
        if self._error is not None:
            raise self._error
        return self._value  # type: ignore[return-value]

    def _run(self) -> Bell:
        """Calls the function; gives what is to be rung then, by who has let go of this: a value may be large."""
        try:
            self._value = self._work()
        except BaseException as error:
            self._error = error
        del self._work
        return self._bell


class Uninterrupted:
    """Threads that do what blocks, each one thing at a time; as many as are needed at once. Thread-safe.

    An interruption (Ctrl-C) that meets a thread inside grpcio, after a lock was taken and before that was noted, leaves
    the lock taken for ever, and with it every call of the channel. Python interrupts the main thread alone.
    """

    def __init__(self) -> None:
        """None yet."""
        self._idle: deque[SimpleQueue[Result[Any] | None]] = deque()
        self._closed = False

    def safely(self, work: Callable[[], T], cancel: Callable[[], object] | None = None) -> T:
        """Does something where no signal interrupts it. What interrupts the waiting has `cancel` called there."""
        if threading.get_ident() != threading.main_thread().ident:
            return work()
        result: Result[T] | None = None
        try:
            result = self.begin(work)
            return result.wait()
        except BaseException:
            # It may have been interrupted before it was begun, too.
            if cancel is not None and not (result is not None and result.done()):
                self.begin(cancel)
            raise

    def begin(self, work: Callable[[], T]) -> Result[T]:
        """Does something while the caller goes on."""
        result = Result(work)
        try:
            self._idle.pop().put(result)
        except IndexError:
            jobs: SimpleQueue[Result[Any] | None] = SimpleQueue()
            jobs.put(result)
            begin_thread(self._run, jobs)
        return result

    def close(self) -> None:
        """Ends the threads that have nothing to do, and each of the others when it has done what it does."""
        self._closed = True
        while self._idle:
            try:
                self._idle.pop().put(None)
            except IndexError:
                return

    def _run(self, jobs: SimpleQueue[Result[Any] | None]) -> None:
        while (result := jobs.get()) is not None:
            bell = result._run()
            del result
            bell.ring()
            # The last first, so that few are used.
            self._idle.append(jobs)
            if self._closed:
                self.close()
