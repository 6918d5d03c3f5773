"""Starts a gang of `rankbridge up` and the controller of a program, and ends both."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.diagnose.faults import Program
from tests.diagnose.jobs import HERE, RANKBRIDGE, started
from tests.diagnose.plan import SIZE
from tests.diagnose.variants import Variant

_START_S = 60.0


@contextmanager
def gang(program: Program, seed: int, folder: Path, variant: Variant) -> Iterator[subprocess.Popen[bytes]]:
    """The controller."""
    endpoints = folder / "endpoints.json"
    up = [*RANKBRIDGE, "up", "--size", str(SIZE), "--name", folder.name, "--endpoints-file", str(endpoints)]
    up += ["--load", str(HERE / "gang" / "app.py")]
    controller = [sys.executable, str(HERE / "gang" / "controller.py"), program.name, str(seed), str(folder)]
    paths = {"PYTHONPATH": str(HERE.parents[1])}
    with started(up, folder, paths) as ranks:
        deadline = time.monotonic() + _START_S
        while not endpoints.exists():
            if ranks.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"the gang has not started: {(folder / 'output').read_text()[-2000:]}")
            time.sleep(0.02)
        with started(controller, folder, paths) as job:
            yield job
