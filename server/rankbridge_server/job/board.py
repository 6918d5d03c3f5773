"""What a job's ranks write for each other in the job's own store, so that nothing mixes with its collectives."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Protocol

_PAUSE_S = 0.005
_LONGEST_PAUSE_S = 0.25


class Store(Protocol):
    """What is used of `torch.distributed.Store`."""

    def set(self, key: str, value: str, /) -> None:
        """Sets a key; the last value counts."""

    def get(self, key: str, /) -> bytes:
        """The value of a key that is there."""

    def check(self, keys: list[str], /) -> bool:
        """Whether all keys are there. Waits for none."""

    def add(self, key: str, amount: int, /) -> int:
        """Adds to a number, which begins at 0; gives the sum."""

    def compare_set(self, key: str, expected: str, desired: str, /) -> bytes:
        """Sets a key whose value is `expected`, or, where that is empty, that is not there. Gives its value then."""


class Stopped(Exception):
    """The sidecar was stopped while it waited for other ranks."""


class Board:
    """A job's store, under a prefix. It never waits within the store, which answers the job one question at a time.

    `until`: the time, of `time.monotonic`, at which waiting for others ends with TimeoutError. `stop`: ends it with
    Stopped.
    """

    def __init__(
        self, store: Store, prefix: str, rank: int, size: int, until: float, stop: threading.Event
    ) -> None:
        self._store = store
        self._prefix = prefix
        self._rank = rank
        self._size = size
        self._until = until
        self._stop = stop

    def write(self, what: str, text: str) -> None:
        """Writes something for all."""
        self._store.set(f"{self._prefix}/{what}", text)

    def write_once(self, what: str, text: str) -> str:
        """Writes something for all, unless one rank has; gives what is there. It is not empty."""
        return self._store.compare_set(f"{self._prefix}/{what}", "", text).decode()

    def count(self, what: str) -> int:
        """How many times ranks have asked for this number, this time included."""
        return self._store.add(f"{self._prefix}/{what}", 1)

    def read(self, what: str) -> str:
        """Waits for what one rank writes for all."""
        self._wait([f"{self._prefix}/{what}"], lambda: f"rank 0 has not written {what!r}")
        return self._store.get(f"{self._prefix}/{what}").decode()

    def find(self, what: str) -> str | None:
        """What one rank has written for all; None: none has yet."""
        key = f"{self._prefix}/{what}"
        return self._store.get(key).decode() if self._store.check([key]) else None

    def write_mine(self, what: str, text: str) -> None:
        """Writes what each rank writes of its own; again to change it."""
        self.write(f"{what}/{self._rank}", text)

    def read_all(self, what: str) -> list[str]:
        """Waits for what every rank writes, by rank."""
        keys = [f"{self._prefix}/{what}/{rank}" for rank in range(self._size)]

        def missing() -> str:
            ranks = [rank for rank, key in enumerate(keys) if not self._store.check([key])]
            return (
                f"ranks {ranks} have not attached"
                if len(ranks) <= 8
                else f"{len(ranks)} ranks have not attached"
            )

        self._wait(keys, missing)
        return [self._store.get(key).decode() for key in keys]

    def _wait(self, keys: list[str], missing: Callable[[], str]) -> None:
        pause = _PAUSE_S
        while not self._store.check(keys):
            if self._stop.wait(pause):
                raise Stopped
            if time.monotonic() > self._until:
                raise TimeoutError(missing())
            pause = min(1.5 * pause, _LONGEST_PAUSE_S)
