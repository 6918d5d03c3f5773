"""Gangs that the harness starts: `rankbridge up` in processes of their own, which end with this one."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import rankbridge
from rankbridge import Gang
from rankbridge.harness.point_server import VARIABLE, PointServer

START_TIMEOUT_S = 120.0
END_TIMEOUT_S = 15.0

COMMAND_VARIABLE = "RANKBRIDGE_COMMAND"


class NoGang(Exception):
    """A gang did not start, or has ended."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a gang is to be. Gangs that are wanted alike are alike.

    Attributes:
        size: Ranks.
        backend: What moves its data.
        limits: Options of `up` that take a number, without dashes: quotas of each rank, and times.
        load: Modules with functions: names, and absolute paths of files.
        points: Collectives of functions are points for faults.
    """

    size: int
    backend: str = "gloo"
    limits: tuple[tuple[str, int], ...] = ()
    load: tuple[str, ...] = ()
    points: bool = False

    def __str__(self) -> str:
        """Gives for example ``4 ranks on gloo``."""
        quotas = "".join(f", {name} {value}" for name, value in self.limits)
        loaded = f" with {', '.join(map(_file_name, self.load))}" if self.load else ""
        return f"{self.size} ranks on {self.backend}{quotas}{loaded}"


def load_paths(load: str | Sequence[str], folder: Path) -> tuple[str, ...]:
    """Gives modules as the word `load` of a gang names them, with absolute paths of those that are files."""
    named = [load] if isinstance(load, str) else load
    return tuple(str((folder / it).resolve()) if it.endswith(".py") else it for it in named)


def _file_name(module: str) -> str:
    return Path(module).name if module.endswith(".py") else module


def command() -> list[str]:
    """Gives the command that starts gangs: of ``RANKBRIDGE_COMMAND``, beside this Python, or in the path.

    Raises:
        NoGang: There is none.
    """
    if given := os.environ.get(COMMAND_VARIABLE):
        return [given]
    beside = Path(sys.executable).with_name("rankbridge")
    found = str(beside) if beside.exists() else shutil.which("rankbridge")
    if found is None:
        raise NoGang(f"there is no command rankbridge in the path; {COMMAND_VARIABLE} says where it is")
    return [found]


class Reports:
    """What `up` reports, by a thread that reads it.

    Attributes:
        events: The last 1,000 events.
        said: The last 100 lines of its standard error.
        pids: Process of each rank, once it is ready.
    """

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        """Begins to read."""
        self.events: deque[dict[str, Any]] = deque(maxlen=1000)
        self.said: deque[str] = deque(maxlen=100)
        self.pids: dict[int, int] = {}
        self.ready: dict[str, Any] | None = None
        self.listener: Callable[[Mapping[str, Any]], None] | None = None
        self._ended = False
        self._changed = threading.Condition()
        for read, stream in ((self._read_text, process.stderr), (self._read_events, process.stdout)):
            threading.Thread(target=read, args=(stream,), daemon=True).start()

    def wait_until(self, condition: Callable[[], bool], timeout: float) -> bool:
        """Waits for something that events change, or for the end of them; tells whether it came."""
        with self._changed:
            self._changed.wait_for(lambda: condition() or self._ended, timeout)
            return condition()

    def why(self) -> str:
        """Says why it has ended, or did not become ready."""
        failed = [it for it in self.events if it.get("event") in ("failed", "ended")]
        return str(failed[-1].get("reason")) if failed else "\n".join(self.said) or "it has ended"

    def _take(self, event: dict[str, Any]) -> None:
        with self._changed:
            self.events.append(event)
            match event.get("event"):
                case "ready":
                    self.ready = event
                    self.pids = {int(it["rank"]): int(it["pid"]) for it in event["ranks"]}
                case "replaced":
                    self.pids[int(event["rank"])] = int(event["pid"])
            self._changed.notify_all()
        if self.listener is not None:
            self.listener(event)

    def _read_text(self, stream: Any) -> None:
        with stream:
            for line in stream:
                self.said.append(line.decode(errors="replace").rstrip("\n")[:1000])

    def _read_events(self, stream: Any) -> None:
        with stream:
            for line in stream:
                with contextlib.suppress(ValueError):
                    self._take(json.loads(line))
        with self._changed:
            self._ended = True
            self._changed.notify_all()


@dataclass(frozen=True)
class RunningGang:
    """One gang, and the client that drives it.

    Attributes:
        wanted: What it is.
        client: What drives it; its own session is the shared one.
        reports: What `up` reports.
        points: Where ranks wait at collectives of functions. None: they do not.
    """

    wanted: Wanted
    client: Gang
    process: subprocess.Popen[bytes]
    reports: Reports
    points: PointServer | None

    @property
    def pids(self) -> dict[int, int]:
        """Process of each rank, as it is now."""
        return dict(self.reports.pids)

    @property
    def alive(self) -> bool:
        """Whether its process runs."""
        return self.process.poll() is None

    def end(self) -> None:
        """Ends every rank, and waits for that."""
        if self.points is not None:
            self.points.close()
        with contextlib.suppress(rankbridge.RankBridgeError, OSError):
            self.client.close()
        end(self.process)


def end(process: subprocess.Popen[bytes]) -> None:
    """Ends `up` by closing its input; if it does not end in time, kills it, and the kernel its ranks."""
    assert process.stdin is not None
    with contextlib.suppress(OSError):
        process.stdin.close()
    try:
        process.wait(END_TIMEOUT_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def start(wanted: Wanted, options: Sequence[str] = ()) -> RunningGang:
    """Starts a gang, and connects to it.

    Raises:
        NoGang: It did not start in time. Nothing is left of it.
    """
    with contextlib.ExitStack() as undo:
        points = PointServer() if wanted.points else None
        if points is not None:
            undo.callback(points.close)
        process = _begun(wanted, options, points)
        undo.callback(end, process)
        reports = Reports(process)
        gang = RunningGang(wanted, _connected(wanted, process, reports), process, reports, points)
        undo.pop_all()
        return gang


def _begun(wanted: Wanted, options: Sequence[str], points: PointServer | None) -> subprocess.Popen[bytes]:
    """Starts the process of `up`. Raises NoGang."""
    quotas = [it for name, value in wanted.limits for it in (f"--{name.replace('_', '-')}", str(value))]
    arguments = ["up", "--size", str(wanted.size), "--backend", wanted.backend, "--report", "json"]
    arguments += [it for module in wanted.load for it in ("--load", module)]
    environment = {name: it for name, it in os.environ.items() if name != VARIABLE}
    try:
        return subprocess.Popen(
            [*command(), *arguments, "--exit-on-stdin-close", *quotas, *options],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=environment if points is None else {**environment, VARIABLE: points.path},
        )
    except OSError as error:
        raise NoGang(f"{wanted} did not start: {error}") from error


def _connected(wanted: Wanted, process: subprocess.Popen[bytes], reports: Reports) -> Gang:
    """Waits until a gang is ready, and connects to it. Raises NoGang."""
    try:
        if not reports.wait_until(lambda: reports.ready is not None, START_TIMEOUT_S):
            late = "" if process.poll() is not None else f"it was not ready after {START_TIMEOUT_S:.0f} s; "
            raise NoGang(f"{wanted} did not start: {late}{reports.why()}")
        assert reports.ready is not None
        return rankbridge.connect(reports.ready, session=False, calls="ranks")
    except (rankbridge.RankBridgeError, OSError) as error:
        raise NoGang(f"{wanted} did not start: {error}") from error


class Pool:
    """Gangs that are kept for the next who wants one alike: a new one costs a second and more.

    Args:
        most: Gangs that are kept at once.
    """

    def __init__(self, most: int = 3) -> None:
        """Starts none."""
        self._most = most
        self._gangs: dict[Wanted, RunningGang] = {}

    def gang(self, wanted: Wanted) -> RunningGang:
        """Gives a gang that works: one that runs, or a new one.

        Raises:
            NoGang: It did not start.
        """
        gang = self._gangs.pop(wanted, None)
        if gang is not None and not gang.alive:
            gang.end()
            gang = None
        if gang is None:
            while len(self._gangs) >= self._most:
                self._gangs.pop(next(iter(self._gangs))).end()
            gang = start(wanted)
        self._gangs[wanted] = gang
        return gang

    def drop(self, gang: RunningGang) -> None:
        """Ends a gang that cannot be used again."""
        self._gangs.pop(gang.wanted, None)
        gang.end()

    def close(self) -> None:
        """Ends every browser's stream."""
        while self._gangs:
            self._gangs.popitem()[1].end()

    def __enter__(self) -> Pool:
        """Gives itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """Ends all gangs."""
        self.close()
