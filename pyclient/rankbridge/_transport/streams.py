"""The streams by which a gang's operations go, for the sync and the async front."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, Generic, Protocol, TypeVar

__all__ = ["REFUSED", "Streams"]

REFUSED = "execute"
"""The operation of the error with which a rank refuses a stream."""

_MOST = 4
"""Streams to one rank. A rank has 64, for all who call it."""

A_co = TypeVar("A_co", covariant=True)
A = TypeVar("A")


class _Stream(Protocol[A_co]):
    """An ``RankStream`` or an ``AsyncRankStream``."""

    @property
    def closed(self) -> bool: ...

    def send_alone(self, message: bytes) -> A_co | None: ...

    def withdraw(self, operation_id: str) -> None: ...

    def close(self) -> None: ...


E = TypeVar("E", bound="_Stream[Any]")


class Streams(Generic[E, A]):
    """Streams by the rank that is called. Thread-safe.

    Each has one thing under way at a time, so that none waits for the answer to another thread's or task's.
    """

    def __init__(self, opened: Callable[[int], E]) -> None:
        """Opens each when it is needed; `opened` opens one to a rank."""
        self._opened = opened
        self._lock = threading.Lock()
        self._streams: dict[int, tuple[E, ...]] = {}
        self._refusing: set[int] = set()

    def send(self, rank: int, message: bytes) -> tuple[E, A] | None:
        """Sends an ``ExecuteRequest``; gives its stream, and its answer to come. None: there is no stream for it."""
        for stream in self._streams.get(rank, ()):
            answer: A | None = stream.send_alone(message)
            if answer is not None:
                return stream, answer
        with self._lock:
            streams = tuple(it for it in self._streams.get(rank, ()) if not it.closed)
            self._streams[rank] = streams
            if rank in self._refusing or len(streams) >= _MOST:
                return None
            stream = self._opened(rank)
            answer = stream.send_alone(message)
            self._streams[rank] = (*streams, stream)
        return None if answer is None else (stream, answer)

    def withdraw(self, rank: int, operation_id: str) -> None:
        """Withdraws what was sent to a rank under an id, if anything was: who was interrupted cannot tell."""
        for stream in self._streams.get(rank, ()):
            stream.withdraw(operation_id)

    def refused_by(self, rank: int) -> None:
        """Opens no stream to that rank any more: it has as many as it takes."""
        with self._lock:
            self._refusing.add(rank)

    def close(self) -> None:
        """Ends them all."""
        with self._lock:
            streams = [stream for some in self._streams.values() for stream in some]
            self._streams = {}
        for stream in streams:
            stream.close()
