"""Runs a program in one of its variants, and has `rankbridge doctor` say what is wrong."""

from __future__ import annotations

import json
import random
import subprocess
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from tests.diagnose.faults import Program
from tests.diagnose.gang.running import gang
from tests.diagnose.jobs import RANKBRIDGE, torchrun
from tests.diagnose.machine import Machine
from tests.diagnose.plan import SIZE, Plan, marker
from tests.diagnose.variants import Variant

START_S = 90.0
MACHINE = Machine()
ENDS_S = 8.0
"""Within which torchrun ends a job of which a rank has failed."""


class Job(Protocol):
    """A process that has started the ranks, as subprocess has it."""

    @property
    def pid(self) -> int: ...
    def poll(self) -> int | None: ...
    def wait(self, timeout: float | None = None) -> int | None: ...


@dataclass(frozen=True)
class Outcome:
    """What was said of a run, and how long it took."""

    verdict: dict[str, Any]
    seconds: float

    @property
    def text(self) -> str:
        """The verdict for people who look for what was wrong about it."""
        return json.dumps(self.verdict, indent=1)


def diagnose(program: Program, seed: int, variant: Variant, bundle: Path | None = None) -> Outcome:
    """Runs it until its fault has begun, and asks."""
    plan = Plan.drawn(program.name, seed)
    run = gang if variant is Variant.GANG else torchrun
    with tempfile.TemporaryDirectory(prefix="rankbridge-diagnose-") as name:
        folder = Path(name)
        with ExitStack() as stack:
            with MACHINE.beginning():
                job = stack.enter_context(run(program, seed, folder, variant))
                until_it_has_begun(program, plan, folder, job)
            time.sleep(later(program, seed))
            with MACHINE.judging():
                return ask(_of(program, variant, folder, job), bundle)


def ask(asked: Sequence[str], bundle: Path | None = None) -> Outcome:
    """Has the doctor judge. `asked`: what the command is asked of."""
    kept = [] if bundle is None else ["--bundle", str(bundle)]
    began = time.monotonic()
    answer = _doctor([*asked, "--json", *kept])
    seconds = time.monotonic() - began
    if answer.returncode not in (0, 1, 3):
        raise RuntimeError(f"doctor {asked} ended with {answer.returncode}: {answer.stderr}")
    return Outcome(json.loads(answer.stdout), seconds)


def _of(program: Program, variant: Variant, folder: Path, job: Job) -> list[str]:
    """What the doctor is asked of."""
    endpoints = folder / "endpoints.json"
    # A job that does not begin has no sidecars.
    if variant in (Variant.GANG, Variant.ATTACHED) and endpoints.exists():
        return ["--endpoints", str(endpoints)]
    return [str(folder / "record")] if program.ends or job.poll() is not None else [str(job.pid)]


def _doctor(arguments: list[str]) -> subprocess.CompletedProcess[str]:
    command = [*RANKBRIDGE, "doctor", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


def until_it_has_begun(program: Program, plan: Plan, folder: Path, job: Job) -> None:
    """Waits until the fault is there."""
    if program.ends:
        wait_for(lambda: job.poll() is not None or marker(folder, plan.victim).exists())
        with suppress(subprocess.TimeoutExpired):
            job.wait(ENDS_S)
        return
    everyone = [marker(folder, rank + 100) for rank in range(SIZE)]
    wanted = everyone if program.is_right else [marker(folder, plan.victim)]

    def have_come() -> bool:
        has_ended = job.poll() is not None
        if all(it.exists() for it in wanted):
            return True
        if has_ended:
            raise RuntimeError(
                f"{program.name}: the job has ended: {(folder / 'output').read_text()[-2000:]}"
            )
        return False

    wait_for(have_come)


def later(program: Program, seed: int) -> float:
    """After how many seconds somebody asks."""
    if program.ends:
        return 0.0
    # It is chance where nothing is wrong.
    return random.Random(seed).uniform(0.2, 3.5) if program.is_right else program.later_s


def wait_for(condition: Callable[[], bool]) -> None:
    """Waits until it is true, for as long as jobs take to begin. Raises TimeoutError."""
    deadline = time.monotonic() + START_S
    while not condition():
        if time.monotonic() > deadline:
            raise TimeoutError(f"the fault has not begun within {START_S:g} s")
        time.sleep(0.02)
