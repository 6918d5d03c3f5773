"""The members of one group within the test's process, each with a thread of its own: no sidecars, no admission."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

from rankbridge_server.backends.fake import FakeBackend, FakeHub
from rankbridge_server.backends.gloo import GlooBackend
from rankbridge_server.core.coordinator import Backend, Coordinator, GroupDescription

PATIENCE_S = 60.0
"""Bounds hangs and nothing else."""


class Members:
    """Coordinators by rank in group."""

    def __init__(self, coordinators: Sequence[Coordinator], threads: ThreadPoolExecutor) -> None:
        self.coordinators = coordinators
        self._threads = threads

    def __len__(self) -> int:
        return len(self.coordinators)

    def call(self, method: str, arguments: Iterable[tuple[object, ...]]) -> list[Any]:
        """What a method of each coordinator gives with its own arguments, called on all at once.

        Raises the first error in group order.
        """
        futures = [
            self._threads.submit(getattr(coordinator, method), *mine)
            for coordinator, mine in zip(self.coordinators, arguments, strict=True)
        ]
        return [future.result(PATIENCE_S) for future in futures]


@contextmanager
def members(backend: str, size: int) -> Iterator[Members]:
    """Form a group of `size` on "fake" or "gloo"; on leaving, it is closed."""
    hub = FakeHub()
    backends: list[Backend] = [GlooBackend() if backend == "gloo" else FakeBackend(hub) for _ in range(size)]
    group = GroupDescription(f"{backend}{size}", tuple(range(size)))
    joining = [it.join(group, rank, 1) for rank, it in enumerate(backends)]
    addresses = [it.address for it in joining]
    with ThreadPoolExecutor(size) as threads:
        connecting = [threads.submit(it.connect, addresses, PATIENCE_S) for it in joining]
        coordinators = [it.result(PATIENCE_S) for it in connecting]
        try:
            yield Members(coordinators, threads)
        finally:
            for coordinator in coordinators:
                coordinator.close()
