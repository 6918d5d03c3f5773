"""Monarch: the client calls the endpoints of an actor mesh on this host; its actors call torch.distributed."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache, partial
from importlib.metadata import version
from pathlib import Path
from typing import Any

from bench.native_rank import EVERYWHERE, NativeRank, free_port
from bench.operation import TRANSFERRED
from bench.subject import Ways, serve, timed

ROOT = Path(__file__).resolve().parents[2]


@contextmanager
def started(size: int) -> Iterator[Ways]:
    """Starts a process for each rank, and an actor in it."""
    os.environ.update(PYTHONPATH=str(ROOT), GLOO_SOCKET_IFNAME="lo", OMP_NUM_THREADS="1")
    from monarch.actor import (  # type: ignore[import-not-found, unused-ignore]
        Actor,
        current_rank,
        endpoint,
        this_host,
    )

    class Ranks(Actor):  # type: ignore[misc, unused-ignore]
        def __init__(self, size: int, port: int) -> None:
            self._place = size, port
            self._native: Any = None

        @endpoint  # type: ignore[untyped-decorator, unused-ignore]
        def form(self) -> None:
            self._native = NativeRank(current_rank().rank, *self._place)

        @endpoint  # type: ignore[untyped-decorator, unused-ignore]
        def do(self, method: str, *args: Any) -> Any:
            return getattr(self._native, method)(*args)

    processes = this_host().spawn_procs({"ranks": size})
    try:
        ranks: Any = processes.spawn("ranks", Ranks, size, free_port())
        ranks.form.call().get()
        yield _ways(ranks, size)
    finally:
        processes.stop().get()


def _ways(ranks: Any, size: int) -> Ways:
    near, far = ranks.slice(ranks=0), ranks.slice(ranks=1 % size)

    def everywhere(method: str) -> None:
        ranks.do.call(method).get()

    calls = {name: timed(partial(everywhere, method)) for name, method in EVERYWHERE.items()}
    calls["empty_one"] = timed(lambda: near.do.call_one("empty").get())
    for name, nbytes in TRANSFERRED.items():
        calls[f"fetch_{name}"] = timed(_calling(far, "fetch", name))
        calls[f"put_{name}"] = timed(_putting(far, nbytes))
    return Ways({"monarch": version("torchmonarch")}, {"calls": calls}, {})


def _calling(rank: Any, *args: Any) -> Callable[[], Any]:
    return lambda: rank.do.call_one(*args).get()


def _putting(rank: Any, nbytes: int) -> Callable[[], Any]:
    return lambda: rank.do.call_one("put", _whole(nbytes)).get()


@cache
def _whole(nbytes: int) -> Any:
    import torch

    return torch.ones(nbytes, dtype=torch.uint8)


if __name__ == "__main__":
    serve(started)
