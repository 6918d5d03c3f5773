"""Engines that are programs: `rankbridge up --backend program:COMMAND`."""

from __future__ import annotations

import io
import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from glob import escape
from pathlib import Path

import numpy as np
import pytest
from tests.support.backends.engine import BABBLE, END, HANG, REFUSE, SHORT
from tests.support.gangs import RunningGang, up, why_not
from tests.support.sampling import sample
from tests.support.waiting import until

import rankbridge
from rankbridge import ErrorCode, Gang, GangError
from rankbridge.harness.conformance.command import report_on
from rankbridge.harness.conformance.running import probes

pytestmark = pytest.mark.usefixtures("quick_gangs")
ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.sampled
def test_the_example_in_go_is_right_in_all_that_it_has(tmp_path: Path) -> None:
    if shutil.which("go") is None:
        pytest.skip("go is not installed")
    subprocess.run(
        ["go", "build", "-o", tmp_path / "adapter", "."],
        cwd=ROOT / "examples" / "adapter",
        env={**os.environ, "GOCACHE": str(tmp_path / "cache"), "GOFLAGS": "-mod=mod"},
        check=True,
        timeout=200,
    )
    out = io.StringIO()
    drawn = [escape(it.name) for it in sample(probes(), 30)]
    status = report_on(
        f"program:{tmp_path / 'adapter'}", patterns=["barrier", *drawn], report="json", out=out
    )
    _, *lines = map(json.loads, out.getvalue().splitlines())
    bad = [it for it in lines if it["verdict"] not in ("right", "unsupported")]
    assert (status, bad) == (0, [])
    assert "right" in {it["verdict"] for it in lines}


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningGang]:
    """Two ranks on an engine that goes wrong when it is asked to."""
    folder = tmp_path_factory.mktemp("engine")
    engine = ROOT / "tests" / "support" / "backends" / "engine.py"
    command = shlex.join([sys.executable, "-S", str(engine), str(folder)])
    # Longer than a program may be held up that does not hang.
    options = ["--heartbeat-misses", "300", "--data-timeout", "5"]
    with up(tmp_path_factory.mktemp("gang"), 2, f"program:{command}", options) as gang:
        yield gang


@pytest.fixture(scope="module")
def gang(running: RunningGang) -> Iterator[Gang]:
    """Connected to them."""
    with rankbridge.connect(running.description) as gang:
        yield gang


def test_what_a_program_does_not_name_is_missing(gang: Gang) -> None:
    abilities = gang[0].status().abilities
    assert abilities is not None
    assert {"barrier", "all_reduce"} <= set(abilities.collectives)
    assert not {"broadcast", "send", "gather_object"} & set(abilities.collectives)
    assert abilities.reductions == {"max": ("float32",)}
    gang.barrier(timeout=10)


@pytest.mark.parametrize(
    ("first", "said"),
    [
        (HANG, "it did not return in 5.5 s from call"),
        (END, "has ended with status 3"),
        (BABBLE, "this is no answer"),
        (SHORT, "all_reduce answered 3 bytes, expected 8"),
        (REFUSE, "the author forgot something"),
    ],
)
def test_a_program_that_goes_wrong_ends_the_generation_and_no_rank(
    gang: Gang, first: float, said: str
) -> None:
    before = gang.status()
    refs = gang.put([np.array([first, 0], np.float32)] * 2)
    with pytest.raises(GangError) as raised:
        gang.all_reduce(refs, op="max", timeout=20)
    errors = [it.error for it in raised.value.outcomes if it.error]
    assert len(errors) == 2
    assert {it.code for it in errors} <= {ErrorCode.BACKEND_FAILED, ErrorCode.ABORTED}
    assert all(it.indefinite and said in str(it) for it in errors)
    gang.form(timeout=30)
    assert [it.pid for it in gang.status()] == [it.pid for it in before]
    gang.barrier(timeout=10)


def children_of(pid: int) -> list[str]:
    found: list[str] = []
    for task in Path(f"/proc/{pid}/task").iterdir():
        # A thread may end meanwhile.
        with suppress(FileNotFoundError, ProcessLookupError):
            found += (task / "children").read_text().split()
    return found


@pytest.mark.skipif(shutil.which("setpriv") is None, reason="setpriv is not installed")
def test_a_program_that_hangs_ends_with_its_rank(gang: Gang, running: RunningGang) -> None:
    gang.form(timeout=30)
    pid = gang[1].status().pid
    programs = children_of(pid)
    assert programs
    refs = gang.put([np.array([HANG, 0], np.float32)] * 2)
    calls = [gang[it].start("all_reduce", refs[it], op="max", timeout=20) for it in range(2)]
    until(lambda: any(it.phase == "data" for it in gang[1].pending().operations))
    os.kill(pid, signal.SIGKILL)
    until(lambda: not any(Path(f"/proc/{it}").exists() for it in programs))
    assert all(it.exception() is not None for it in calls)
    gang.form(timeout=30)
    gang.barrier(timeout=10)


def test_a_gang_on_a_program_that_is_not_there_does_not_start(tmp_path: Path) -> None:
    command = str(tmp_path / "nothing")
    said = f"The program did not connect: {command} cannot be started: there is no such program"
    assert why_not(f"program:{command}") == f"rank 0: {said}"
