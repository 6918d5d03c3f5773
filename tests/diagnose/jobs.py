"""Starts a program of job.py under torchrun, and ends it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from tests.diagnose.faults import Program
from tests.diagnose.plan import SIZE
from tests.diagnose.variants import Variant

HERE = Path(__file__).resolve().parent
BIN = Path(sys.executable).parent
RANKBRIDGE = [sys.executable, "-m", "rankbridge_server"]


@contextmanager
def started(
    command: list[str], folder: Path, settings: Mapping[str, str]
) -> Iterator[subprocess.Popen[bytes]]:
    """A command whose output is in the folder; on leaving, it has ended, and all that it has started."""
    environ = {**os.environ, "DIAGNOSE_FOLDER": str(folder), "OMP_NUM_THREADS": "1", **settings}
    with (folder / "output").open("ab") as output:
        job = subprocess.Popen(
            command,
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


@contextmanager
def torchrun(
    program: Program, seed: int, folder: Path, variant: Variant, settings: Mapping[str, str] | None = None
) -> Iterator[subprocess.Popen[bytes]]:
    """The job, in one of the variants of a torchrun job."""
    # torchrun itself takes ports that nobody has: one that was free a moment ago may be taken.
    command = [str(BIN / "torchrun"), "--nproc-per-node", str(SIZE)]
    command += ["--rdzv-backend", "c10d", "--rdzv-endpoint", "127.0.0.1:0"]
    command += [str(HERE / "job.py"), program.name, str(seed), str(folder)]
    if variant in (Variant.WATCHED, Variant.GUARDED):
        guard = ["--guard"] if variant is Variant.GUARDED else []
        command = [*RANKBRIDGE, "watch", *guard, "--record", str(folder / "record"), "--", *command]
    attached = {"DIAGNOSE_ATTACH": str(folder / "endpoints.json")} if variant is Variant.ATTACHED else {}
    with started(command, folder, {**attached, **(settings or {})}) as job:
        yield job


def _end(job: subprocess.Popen[bytes]) -> None:
    """Ends the job at once: its ranks are stuck, and would keep torchrun waiting. They are of torchrun's sessions."""
    kill(job.pid, *descendants(job.pid))
    job.wait()


def kill(*pids: int) -> None:
    """Ends processes of which some may have ended."""
    for pid in pids:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


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
