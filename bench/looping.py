"""Ranks that loop by themselves, each in a process of its own, told only what to loop and how often."""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from bench.lifetime import end_with_parent
from bench.subject import Timed


@dataclass(frozen=True, slots=True)
class Place:
    """Where a rank is.

    Attributes:
        rank: Its number.
        size: Ranks in all.
        directory: For sockets of all ranks, of short names.
        meet: Gives what every rank has given, by rank; all call it as often.
    """

    rank: int
    size: int
    directory: Path
    meet: Callable[[Any], list[Any]]


Enter = Callable[[Place], Mapping[str, Timed]]
"""Becomes a rank; gives its operations."""


@contextmanager
def looping(
    size: int,
    names: Sequence[str],
    enter: Enter,
    preload: Sequence[str] = (),
    overheard: Callable[[list[Any]], object] = lambda said: None,
) -> Iterator[dict[str, Timed]]:
    """Starts ranks; gives operations that all of them loop, with the times of rank 0.

    Args:
        size: Ranks.
        names: Operations that `enter` gives.
        enter: A function of a module, which every rank calls.
        preload: Modules that are imported once, before the ranks are forked.
        overheard: Is given what the ranks give each other when they meet, after they have it.
    """
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(list(preload))
    pipes = [context.Pipe() for _ in range(size)]
    ours = [mine for mine, _ in pipes]
    with TemporaryDirectory(prefix="rankbridge-bench-") as directory:
        ranks = [
            context.Process(target=_rank, args=(enter, rank, size, Path(directory), theirs), daemon=True)
            for rank, (_, theirs) in enumerate(pipes)
        ]
        for rank in ranks:
            rank.start()
        for _, theirs in pipes:
            theirs.close()
        try:
            _relay(ours, overheard)
            yield {name: _timed(ours, name) for name in names}
        finally:
            for pipe in ours:
                pipe.close()
            for rank in ranks:
                rank.join(10)


def _relay(pipes: Sequence[Connection], overheard: Callable[[list[Any]], object]) -> None:
    while True:
        said = [pipe.recv() for pipe in pipes]
        if said[0] == "ready":
            return
        for pipe in pipes:
            pipe.send(said)
        overheard(said)


def looping_pids() -> list[int]:
    """The ranks that this process has started. Their Gloo looks whether there is work 100 times in a second."""
    return [rank.pid for rank in multiprocessing.active_children() if rank.pid]


def _timed(pipes: Sequence[Connection], name: str) -> Timed:
    def run(count: int) -> list[float]:
        for pipe in pipes:
            pipe.send((name, count))
        taken: list[list[float]] = [pipe.recv() for pipe in pipes]
        return taken[0]

    return run


def _rank(enter: Enter, rank: int, size: int, directory: Path, pipe: Connection) -> None:
    def meet(mine: Any) -> list[Any]:
        pipe.send(mine)
        met: list[Any] = pipe.recv()
        return met

    end_with_parent()
    # The subject has ended.
    with suppress(EOFError, BrokenPipeError, ConnectionResetError):
        operations = enter(Place(rank, size, directory, meet))
        pipe.send("ready")
        while True:
            name, count = pipe.recv()
            pipe.send(operations[name](count))
    # Engines wait for their peers when they are taken down.
    os._exit(0)
