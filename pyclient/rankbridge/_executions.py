"""The streams by which a gang's calls go, one for each group."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any

from rankbridge._calls import Call
from rankbridge._execution import Answer, Execution

__all__ = ["Executions"]


class Executions:
    """Streams by the rank that is called and the group: calls of one group never wait for those of another."""

    def __init__(self, open_on: Callable[[int], Callable[[Iterator[bytes]], Any]]) -> None:
        """Opens each with its first call; `open_on` gives, for a rank, what `Execution` is told."""
        self._open_on = open_on
        self._lock = threading.Lock()
        self._streams: dict[tuple[int, str], Execution] = {}

    def send(self, call: Call[Any]) -> tuple[Execution, Answer]:
        """Sends a gang call; gives the stream of its group, and its answer to come."""
        key = (call.rank, call.group)
        while True:
            stream = self._streams.get(key) or self._opened(key)
            answer = stream.send(call.request)
            if answer is not None:
                return stream, answer
            with self._lock:
                if self._streams.get(key) is stream:
                    del self._streams[key]

    def open(self, rank: int) -> Execution:
        """Opens one more stream to a rank. Whoever has asked for it closes it."""
        return Execution(self._open_on(rank))

    def close(self) -> None:
        """Ends them all."""
        with self._lock:
            streams, self._streams = self._streams, {}
        for stream in streams.values():
            stream.close()

    def _opened(self, key: tuple[int, str]) -> Execution:
        with self._lock:
            if key not in self._streams:
                self._streams[key] = Execution(self._open_on(key[0]))
            return self._streams[key]
