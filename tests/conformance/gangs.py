"""Gangs of the sizes that the cases need, one of each at a time."""

from __future__ import annotations

import itertools
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Self

from tests.support.gangs import RunningGang, up

import rankbridge
from rankbridge import Gang

PATIENCE_S = 60.0
"""Longest time of any call whose members all come. It bounds hangs, and nothing else."""

PATIENT = ("--heartbeat-misses", "300")
"""Options of a gang whose ranks are processes: on a busy machine one may be silent for longer than the default."""


class Gangs:
    """Starts gangs when they are asked for, and ends them with the `with` statement, or before.

    Attributes:
        backend: What moves the data.
    """

    def __init__(self, directory: Path, backend: str) -> None:
        """Starts nothing yet; files are written below `directory`."""
        self.backend = backend
        self._directory = directory
        self._numbers = itertools.count()
        self._running: dict[int, tuple[ExitStack, RunningGang, Gang]] = {}

    def __enter__(self) -> Self:
        """Gives itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Ends all gangs."""
        for world in tuple(self._running):
            self.end(world)

    def of_size(self, world: int) -> Gang:
        """Gives a connection to the gang of a size."""
        if world not in self._running:
            directory = self._directory / f"gang{next(self._numbers)}"
            directory.mkdir()
            with ExitStack() as stack:
                options = PATIENT if self.backend != "fake" else ()
                running = stack.enter_context(up(directory, world, self.backend, options))
                gang = stack.enter_context(rankbridge.connect(running.endpoints_file, timeout=PATIENCE_S))
                self._running[world] = (stack.pop_all(), running, gang)
        return self._running[world][2]

    def running(self, world: int) -> RunningGang:
        """Gives the processes of the gang of a size, which was asked for before."""
        return self._running[world][1]

    def end(self, world: int) -> None:
        """Ends the gang of a size, if there is one."""
        if world in self._running:
            stack, _, _ = self._running.pop(world)
            stack.close()

    def end_broken(self, world: int) -> None:
        """Ends the gang of a size if its ranks do not meet any more; the next case starts another."""
        if world in self._running:
            try:
                self._running[world][2].barrier(timeout=10)
            except rankbridge.RankBridgeError:
                self.end(world)
