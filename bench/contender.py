"""A subject as who measures it sees it: a process that is asked for blocks of calls."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Self

from bench import usage

ROOT = Path(__file__).resolve().parents[1]
START_S = 400.0
"""Longest time that a subject may take to start, the Elixir client's compiling among it."""
BLOCK_S = 120.0
_END_S = 20.0


class Absent(Exception):
    """The subject, or what it was asked for, is not there; the message says why."""


@dataclass(frozen=True, slots=True)
class Block:
    """Calls that were made one after the other.

    Attributes:
        seconds: Of each.
        cpu: Seconds of all processes of the subject, the controller's and the ranks', while they were made.
        peak_bytes: Largest memory of each of these processes until now, in sum.
    """

    seconds: list[float]
    cpu: float
    peak_bytes: int


class Contender:
    """A subject's process, from `with` to its end. It ends with this process, however that ends.

    Attributes:
        name: Of the subject.
        versions: Of what it is made of.
        ways: Names of its operations by way.
        missing: Why ways, or operations of them ("gang/barrier"), are not there; "" is the subject itself.
    """

    def __init__(self, name: str, *arguments: str, log: Path, module: str = "bench.subjects") -> None:
        """Starts it; `begun` waits for it, so that several start at once."""
        self.name = name
        self.versions: dict[str, str] = {}
        self.ways: dict[str, list[str]] = {}
        self.missing: dict[str, str] = {}
        self._restless: list[int] = []
        self._log = log / f"{name}.log"
        with self._log.open("wb") as errors:
            self._process = subprocess.Popen(
                [sys.executable, "-m", f"{module}.{name}", *arguments],
                cwd=ROOT,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                # A signal from the terminal is for this process, which then closes its standard input; and the system's
                # scheduler divides the cores among sessions.
                start_new_session=True,
            )
        if self._process.stdin is None or self._process.stdout is None:
            raise RuntimeError("no pipes")
        self._told: IO[bytes] = self._process.stdin
        self._heard: IO[bytes] = self._process.stdout
        self._rest = b""

    def __enter__(self) -> Self:
        """Gives itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Ends it."""
        self.end()

    def begun(self, seconds: float = START_S) -> None:
        """Waits until it has started, so long at most. Sets `missing` if it cannot."""
        try:
            told = self._line(seconds)
        except Absent as absent:
            told = {"absent": f"it did not start: {absent}"}
        if "absent" in told:
            self.missing = {"": told["absent"]}
            self.end()
        else:
            self.versions, self.ways, self.missing = told["versions"], told["ways"], told["missing"]
            self._restless = told["restless"]

    def block(self, way: str, operation: str, calls: int) -> Block:
        """Makes calls. Raises Absent: it failed, and is not asked again."""
        self.ask(way=way, operation=operation, calls=calls)
        try:
            told = self._line(BLOCK_S)
        except Absent:
            # What it may still answer is the answer to nothing else.
            self.ways.clear()
            self.end()
            raise
        if "failed" in told:
            raise Absent(told["failed"])
        return Block(told["seconds"], told["cpu"], told["peak_bytes"])

    def pause(self) -> None:
        """Stops what would use the CPU while others are measured."""
        self._signal(signal.SIGSTOP)

    def resume(self) -> None:
        """Lets it go on. Its next call may take longer than others."""
        self._signal(signal.SIGCONT)

    @property
    def pauses(self) -> bool:
        """Whether there is anything to stop."""
        return bool(self._restless)

    def _signal(self, number: signal.Signals) -> None:
        for pid in self._restless:
            with suppress(ProcessLookupError):
                os.kill(pid, number)

    def ask(self, **asked: Any) -> None:
        """Writes a line. Whether it is read shows in the answer."""
        with suppress(BrokenPipeError):
            self._told.write(json.dumps(asked).encode() + b"\n")
            self._told.flush()

    def answer(self) -> dict[str, Any]:
        """The next line that it says. Raises Absent."""
        return self._line(BLOCK_S)

    def _line(self, patience: float) -> dict[str, Any]:
        poll = select.poll()
        poll.register(self._heard, select.POLLIN)
        while b"\n" not in self._rest:
            if not poll.poll(patience * 1000):
                raise Absent(f"it did not answer in {patience:.0f} s")
            some = os.read(self._heard.fileno(), 1 << 16)
            if not some:
                raise Absent(f"it has ended: {self._logged()}")
            self._rest += some
        line, _, self._rest = self._rest.partition(b"\n")
        told: dict[str, Any] = json.loads(line)
        return told

    def _logged(self) -> str:
        lines = self._log.read_text(errors="replace").strip().splitlines()
        return lines[-1] if lines else "it said nothing"

    def end(self) -> None:
        """Closes its standard input; kills it, and what descends from it, if that does not end it."""
        self.resume()
        # Their numbers may be others' now.
        self._restless = []
        with suppress(BrokenPipeError):
            self._told.close()
        try:
            self._process.wait(_END_S)
        except subprocess.TimeoutExpired:
            for pid in usage.tree(self._process.pid):
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            self._process.wait()
        self._heard.close()
