"""Runs a program of job.py under torchrun, and has `rankbridge doctor` say what is wrong."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.diagnose.faults import Program
from tests.diagnose.plan import SIZE, Plan, marker

HERE = Path(__file__).resolve().parent
BIN = Path(sys.executable).parent
START_S = 90.0
ENDS_S = 8.0
"""Within which torchrun ends a job of which a rank has failed."""


@dataclass(frozen=True)
class Outcome:
    """What was said of a run, and how long it took."""

    program: Program
    plan: Plan
    seed: int
    prepared: bool
    verdict: dict[str, Any]
    page: str
    seconds: float


def diagnose(program: Program, seed: int, prepared: bool, bundle: Path | None = None) -> Outcome:
    """Runs it until its fault has begun, and asks. `prepared`: under `rankbridge watch`."""
    plan = Plan.drawn(program.name, seed)
    with tempfile.TemporaryDirectory(prefix="rankbridge-diagnose-") as name:
        folder = Path(name)
        with _started(program, seed, prepared, folder) as job:
            _until_it_is_time(program, plan, seed, folder, job)
            asked = [str(folder / "record")] if program.ends else [str(job.pid)]
            began = time.monotonic()
            answer = _doctor([*asked, "--json", "--bundle", str(bundle or folder / "bundle")])
            seconds = time.monotonic() - began
            if answer.returncode not in (0, 1, 3):
                raise RuntimeError(f"{program.name}: doctor ended with {answer.returncode}: {answer.stderr}")
        page = _doctor(["--read", str(bundle or folder / "bundle")]).stdout
        return Outcome(program, plan, seed, prepared, json.loads(answer.stdout), page, seconds)


def _doctor(arguments: list[str]) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "rankbridge_server", "doctor", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


@contextmanager
def _started(program: Program, seed: int, prepared: bool, folder: Path) -> Iterator[subprocess.Popen[bytes]]:
    # torchrun itself takes ports that nobody has: one that was free a moment ago may be taken.
    torchrun = [str(BIN / "torchrun"), "--nproc-per-node", str(SIZE)]
    torchrun += ["--rdzv-backend", "c10d", "--rdzv-endpoint", "127.0.0.1:0"]
    torchrun += [str(HERE / "job.py"), program.name, str(seed), str(folder)]
    watch = [sys.executable, "-m", "rankbridge_server", "watch", "--record", str(folder / "record"), "--"]
    environ = {**os.environ, "DIAGNOSE_FOLDER": str(folder), "OMP_NUM_THREADS": "1"}
    with (folder / "output").open("wb") as output:
        job = subprocess.Popen(
            [*watch, *torchrun] if prepared else torchrun,
            env=environ,
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            yield job
        finally:
            _end(job)


def _end(job: subprocess.Popen[bytes]) -> None:
    """Ends the job at once: its ranks are stuck, and would keep torchrun waiting. They are of torchrun's sessions."""
    pids = descendants(job.pid)
    for pid in (job.pid, *pids):
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            continue
    job.wait()


def descendants(pid: int) -> list[int]:
    """What it has started, and what these have."""
    found = []
    for task in Path(f"/proc/{pid}/task").glob("*/children"):
        try:
            children = [int(it) for it in task.read_text().split()]
        except OSError:
            continue
        for child in children:
            found += [*descendants(child), child]
    return found


def _until_it_is_time(
    program: Program, plan: Plan, seed: int, folder: Path, job: subprocess.Popen[bytes]
) -> None:
    if program.ends:
        _wait_for(lambda: job.poll() is not None or marker(folder, plan.victim).exists())
        with suppress(subprocess.TimeoutExpired):
            job.wait(ENDS_S)
        return
    everyone = [marker(folder, rank + 100) for rank in range(SIZE)]
    wanted = everyone if program.is_right else [marker(folder, plan.victim)]

    def have_come() -> bool:
        if job.poll() is not None:
            raise RuntimeError(
                f"{program.name}: the job has ended: {(folder / 'output').read_text()[-2000:]}"
            )
        return all(it.exists() for it in wanted)

    _wait_for(have_come)
    # When somebody asks is chance where nothing is wrong.
    time.sleep(random.Random(seed).uniform(0.2, 3.5) if program.is_right else program.later_s)


def _wait_for(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + START_S
    while not condition():
        if time.monotonic() > deadline:
            raise TimeoutError(f"the fault has not begun within {START_S:g} s")
        time.sleep(0.02)
