"""The generation's store as torch.distributed uses it."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta

from torch._C import _distributed_c10d as c10d

from ..core.store import GenerationStore

TIMEOUT = timedelta(minutes=30)
"""Torch's own default. What waits here ends with the generation, so that it need not be short."""


class TorchStore(c10d.Store):
    """Implements torch's store. `seen`: called with every value that goes in or comes out."""

    def __init__(self, store: GenerationStore, seen: Callable[[bytes, bool], None]) -> None:
        super().__init__()
        self._store = store
        self._seen = seen
        self._timeout = TIMEOUT
        # Since when each thread waits.
        self._waiting: dict[int, float] = {}

    def waited(self) -> float:
        """How long the thread that waits longest has waited so far, in seconds; 0: none does."""
        since = min(list(self._waiting.values()), default=None)
        return 0.0 if since is None else time.monotonic() - since

    @contextmanager
    def _waits(self) -> Iterator[None]:
        thread = threading.get_ident()
        self._waiting[thread] = time.monotonic()
        try:
            yield
        finally:
            del self._waiting[thread]

    def set(self, key: str, value: str | bytes) -> None:
        """Sets a key."""
        data = _bytes(value)
        self._seen(data, True)
        self._store.set(key, data)

    def get(self, key: str) -> bytes:
        """The value of a key, for which it waits."""
        with self._waits():
            value = self._store.get(key, self._timeout.total_seconds())
        self._seen(value, False)
        return value

    def add(self, key: str, amount: int) -> int:
        """Adds to a counter; returns its new value."""
        return self._store.add(key, amount)

    def compare_set(self, key: str, expected: str | bytes, desired: str | bytes) -> bytes:
        """Sets a key that has the expected value; returns what it has then."""
        return self._store.compare_set(key, _bytes(expected), _bytes(desired))

    def check(self, keys: Sequence[str]) -> bool:
        """Whether all keys are there."""
        return self._store.check(keys)

    def wait(self, keys: Sequence[str], timeout: timedelta | None = None) -> None:
        """Waits until all keys are there."""
        with self._waits():
            self._store.wait(keys, (timeout or self._timeout).total_seconds())

    def delete_key(self, key: str) -> bool:
        """Deletes a key; returns whether it was there."""
        return self._store.delete(key)

    def num_keys(self) -> int:
        """The number of keys."""
        return self._store.count()

    def has_extended_api(self) -> bool:
        """False: values are neither appended to, nor set or got several at once."""
        return False

    def clone(self) -> c10d.Store:
        """Itself: any number of threads may use it."""
        return self

    def set_timeout(self, timeout: timedelta) -> None:
        """Sets how long `get` and `wait` wait."""
        self._timeout = timeout

    @property
    def timeout(self) -> timedelta:
        """How long `get` and `wait` wait."""
        return self._timeout


def _bytes(value: str | bytes) -> bytes:
    return value.encode() if isinstance(value, str) else bytes(value)
