"""Reports on a gang: text for people, JSON for the program that started it."""

from __future__ import annotations

import json
import os
import select
import sys
from contextlib import AbstractContextManager, nullcontext
from typing import Any, Protocol

from ..agent.agent import Watcher
from ..sidecar import endpoints
from .progress import progress

# For how long a reader may take nothing before it counts as gone.
_PATIENCE_S = 5.0
_STDOUT = 1
_STDERR = 2


class Report(Watcher, Protocol):
    """Reports what happens to a gang, from its start to its end."""

    def progress(self, what: str) -> AbstractContextManager[None]:
        """A context for a step that takes a while."""

    def starting(self, size: int) -> None:
        """A gang of `size` ranks is about to be started."""

    def ready(self, gang: dict[str, Any]) -> None:
        """Its first generation is formed. `gang`: what the endpoints file holds."""

    def ended(self, reason: str) -> None:
        """No rank is left, and this process ends."""

    def failed(self, reason: str) -> None:
        """The gang did not start, or cannot be watched any more."""


class TextReport:
    """Where the ranks serve goes to standard output, everything else to standard error."""

    def progress(self, what: str) -> AbstractContextManager[None]:
        """Reports a step that takes over a second."""
        return progress(what)

    def starting(self, size: int) -> None:
        """Does nothing: `progress` reports it."""

    def ready(self, gang: dict[str, Any]) -> None:
        """A line for each rank, the token's file and what serves the gang; and one that begins with "ready:"."""
        for rank in gang["ranks"]:
            print(f"rank {rank['rank']}  pid {rank['pid']}  {'  '.join(rank['endpoints'])}")
        if "token_file" in gang:
            print(f"token  {gang['token_file']}")
        for what in ("metrics", "page"):
            if what in gang:
                print(f"{what}  {gang[what]}")
        print(
            f"ready: {gang['size']} ranks on {gang['backend']}, generation {gang['generation']}", flush=True
        )

    def suspected(self, rank: int, pid: int) -> None:
        """Does nothing: the rank's exit is reported."""

    def exited(self, rank: int, pid: int, how: str, replaced: bool) -> None:
        """One line."""
        print(f"rank {rank} (pid {pid}) {how}", file=sys.stderr, flush=True)

    def formed(self, generation: int) -> None:
        """Does nothing: the ranks' logs say it."""

    def replaced(self, rank: int, pid: int, endpoints: list[str]) -> None:
        """One line."""
        print(f"rank {rank} is replaced by pid {pid}  {'  '.join(endpoints)}", file=sys.stderr, flush=True)

    def ended(self, reason: str) -> None:
        """One line."""
        print(f"rankbridge up: {reason}", file=sys.stderr, flush=True)

    def failed(self, reason: str) -> None:
        """One line."""
        print(f"rankbridge up: {reason}", file=sys.stderr, flush=True)


class JsonReport:
    """One JSON object on a line of standard output for each event, written at once; failures to standard error too.

    What else is written to standard output from now on, by whatever this process and its ranks run, goes to standard
    error. A reader that is gone, or takes nothing for seconds, gets no more reports; that stops nobody else.
    """

    def __init__(self) -> None:
        sys.stdout.flush()
        self._fd = os.dup(_STDOUT)
        os.dup2(_STDERR, _STDOUT)
        self._open = True
        self._ranks: dict[int, list[int]] = {}

    def progress(self, what: str) -> AbstractContextManager[None]:
        """Writes what has happened, for programs."""
        return nullcontext()

    def starting(self, size: int) -> None:
        """The first line, unless the arguments are wrong."""
        self._write("starting", pid=os.getpid(), size=size)

    def ready(self, gang: dict[str, Any]) -> None:
        """The endpoints file's object."""
        for rank in gang["ranks"]:
            self._ranks.setdefault(rank["pid"], []).append(rank["rank"])
        shared = {
            key: gang[key]
            for key in ("size", "backend", "generation", "ranks", "tokens", "metrics", "page")
            if key in gang
        }
        self._write("ready", name=gang["gang"], **shared)

    def suspected(self, rank: int, pid: int) -> None:
        """It is about to end."""
        self._write("suspected", rank=rank, pid=pid)

    def exited(self, rank: int, pid: int, how: str, replaced: bool) -> None:
        """A line for each rank of the process."""
        for each in self._ranks.pop(pid, [rank]):
            self._write("exited", rank=each, pid=pid, how=how, replaced=replaced)

    def formed(self, generation: int) -> None:
        """Does nothing: who forms a generation knows it, and others watch the ranks' events."""

    def replaced(self, rank: int, pid: int, endpoints: list[str]) -> None:
        """It serves."""
        self._write("replaced", rank=rank, pid=pid, endpoints=endpoints)

    def ended(self, reason: str) -> None:
        """The last line."""
        self._write("ended", reason=reason)

    def failed(self, reason: str) -> None:
        """The last line; for people, too."""
        self._write("failed", reason=reason)
        print(f"rankbridge up: {reason}", file=sys.stderr, flush=True)

    def _write(self, event: str, **fields: Any) -> None:
        line = memoryview(json.dumps({"event": event, **fields}).encode() + b"\n")
        while line and self._open:
            try:
                # Of a pipe that is ready, so much is taken without waiting.
                if _writable(self._fd):
                    line = line[os.write(self._fd, line[: select.PIPE_BUF]) :]
                    continue
            except OSError:
                # The reader has gone.
                pass
            self._open = False


class WithEndpointsFiles:
    """A watcher that keeps files with the endpoints up to date, and passes events on to another."""

    def __init__(self, watcher: Watcher, published: endpoints.Published) -> None:
        self._watcher = watcher
        self._published = published

    def suspected(self, rank: int, pid: int) -> None:
        """Nothing changes."""
        self._watcher.suspected(rank, pid)

    def exited(self, rank: int, pid: int, how: str, replaced: bool) -> None:
        """Its endpoints stay, for its replacement."""
        self._watcher.exited(rank, pid, how, replaced)

    def formed(self, generation: int) -> None:
        """Writes the files before it reports."""
        self._published.formed(generation)
        self._watcher.formed(generation)

    def replaced(self, rank: int, pid: int, targets: list[str]) -> None:
        """Writes the files before it reports."""
        self._published.replaced(rank, pid, targets)
        self._watcher.replaced(rank, pid, targets)


def _writable(fd: int) -> bool:
    poll = select.poll()
    poll.register(fd, select.POLLOUT)
    return bool(poll.poll(_PATIENCE_S * 1000))
