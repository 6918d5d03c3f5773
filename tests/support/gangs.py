"""Gangs for tests: `rankbridge up` in another process, which ends with the test run however that ends."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.support.prepared import Forked, rankbridge

RANKBRIDGE = str(Path(sys.executable).with_name("rankbridge"))
START_TIMEOUT_S = 120


@dataclass(frozen=True)
class RunningGang:
    """A gang that `rankbridge up` serves."""

    process: subprocess.Popen[str] | Forked
    endpoints_file: Path
    description: dict[str, Any]

    @property
    def size(self) -> int:
        """Ranks in the gang."""
        return int(self.description["size"])

    @property
    def pids(self) -> list[int]:
        """Process id of each rank."""
        return [rank["pid"] for rank in self.description["ranks"]]

    @property
    def targets(self) -> list[str]:
        """GRPC target of each rank: its unix socket."""
        return [rank["endpoints"][0] for rank in self.description["ranks"]]

    @property
    def tcp(self) -> dict[str, Any]:
        """The gang as it is reached by TCP alone."""
        ranks = [{**rank, "endpoints": rank["endpoints"][1:]} for rank in self.description["ranks"]]
        return {**self.description, "ranks": ranks}

    @property
    def guest(self) -> dict[str, Any]:
        """The gang as somebody reaches it who may drive and does not own it."""
        return {**self.tcp, "tokens": {"drive": self.description["tokens"]["drive"]}}

    @property
    def token(self) -> str:
        """What its owner shows."""
        return str(self.description["tokens"]["own"])

    @property
    def tcp_targets(self) -> list[str]:
        """GRPC target of each rank: its TCP port."""
        return [rank["endpoints"][1] for rank in self.description["ranks"]]


@contextmanager
def up(
    directory: Path, size: int = 4, backend: str = "gloo", options: Sequence[str] = (), own: bool = False
) -> Iterator[RunningGang]:
    """Start a gang; on leaving, it has ended. `own`: by a process that has imported nothing yet, as people start it."""
    endpoints_file = directory / f"endpoints-{Path(backend).stem}-{size}.json"
    arguments = [
        *("up", "--size", str(size), "--backend", backend),
        *("--endpoints-file", str(endpoints_file), "--exit-on-stdin-close", *options),
    ]
    with _started(arguments, own or backend in ("mpi", "nccl")) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            lines: list[str] = []
            for line in process.stdout:
                lines.append(line)
                if line.startswith("ready:"):
                    break
            else:
                raise AssertionError(f"{' '.join(arguments)} ended with {process.wait()}: {lines}")
            yield RunningGang(process, endpoints_file, json.loads(endpoints_file.read_text()))
        finally:
            process.stdin.close()
            process.wait(START_TIMEOUT_S)


def why_not(backend: str) -> str:
    """Why a gang on a backend does not start."""
    with rankbridge(["up", "--size", "1", "--backend", backend, "--report", "json"]) as process:
        assert process.stdout is not None
        events = [json.loads(line) for line in process.stdout]
    assert events[-1]["event"] == "failed", events
    return str(events[-1]["reason"])


def _started(arguments: Sequence[str], own: bool) -> subprocess.Popen[str] | Forked:
    if not own:
        return rankbridge(arguments)
    return subprocess.Popen(
        [RANKBRIDGE, *arguments], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
