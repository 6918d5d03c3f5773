"""Verdicts on gangs that run: what is wrong, from the answers of their ranks."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from tests.conftest import PATIENT
from tests.support.gangs import RANKBRIDGE, RunningGang, up
from tests.support.waiting import until

import rankbridge
from rankbridge import Gang, GangError, InvalidArgumentError, Verdict
from rankbridge_server.job.outside import stacks

SIZE = 4
PATIENCE_S = 0.3


@pytest.fixture(params=["gloo4", "fake4"])
def gang(request: pytest.FixtureRequest) -> Iterator[Gang]:
    running: RunningGang = request.getfixturevalue(request.param)
    with rankbridge.connect(running.description, timeout=30.0) as it:
        yield it


def found(gang: Gang, kind: str, waiting: Sequence[int] = ()) -> Verdict:
    """The verdict, once it is of this kind, and these ranks have waited for long: who comes late is blamed, too."""
    verdicts: list[Verdict] = []

    def look() -> bool:
        verdicts.append(verdict := gang.diagnose(patience=PATIENCE_S))
        long = {it.rank for it in verdict.waits if it.waited is not None and it.waited >= PATIENCE_S}
        return verdict.kind == kind and long.issuperset(waiting)

    until(look)
    return verdicts[-1]


def test_a_rank_that_nobody_calls_is_named_and_then_the_gang_is_healthy(gang: Gang) -> None:
    gang.barrier()
    waiting = [gang[rank].start("barrier", timeout=30.0, operation_id="all") for rank in range(SIZE - 1)]
    verdict = found(gang, "never_called", range(SIZE - 1))
    (culprit,) = verdict.culprits
    assert (culprit.rank, culprit.condition, verdict.call) == (3, "idle", "barrier world")
    assert culprit.pid == gang[3].status().pid
    assert sorted(it.rank for it in verdict.waits) == [0, 1, 2]
    for it in verdict.waits:
        assert it.waits_for == (3,)
        assert it.waited is not None
        assert it.waited >= PATIENCE_S
        assert it.site.startswith("test_diagnose.py:")
    assert str(verdict).startswith("NEVER_CALLED: rank 3 has not called barrier world, is idle")
    waiting.append(gang[3].start("barrier", timeout=30.0, operation_id="all"))
    for each in waiting:
        each.result()
    assert gang.diagnose().is_healthy


def test_groups_in_opposite_order_are_a_circle(gang: Gang) -> None:
    first, second = gang.new_group("first", [0, 1]), gang.new_group("second", [0, 1])
    try:
        waiting = [
            gang[0].start("barrier", group=first, timeout=30.0),
            gang[1].start("barrier", group=second, timeout=30.0),
        ]
        verdict = found(gang, "order_inversion")
        assert (verdict.cycle, verdict.culprits) == ((0, 1), ())
        assert {(it.rank, it.call, it.waits_for) for it in verdict.waits} == {
            (0, "barrier first", (1,)),
            (1, "barrier second", (0,)),
        }
        waiting.append(gang[1].start("barrier", group=first, timeout=30.0))
        waiting.append(gang[0].start("barrier", group=second, timeout=30.0))
        for each in waiting:
            each.result()
    finally:
        gang.destroy_group(first)
        gang.destroy_group(second)


def test_members_that_disagreed_are_named_until_the_gang_goes_on(gang: Gang) -> None:
    refs = gang.put([np.ones(2 + (rank == 1), np.float32) for rank in range(SIZE)])
    with pytest.raises(GangError):
        gang.all_reduce(refs)
    verdict = gang.diagnose()
    assert (verdict.kind, [it.rank for it in verdict.culprits]) == ("mismatch_shape", [1])
    assert [it.ranks for it in verdict.sides] == [(0, 2, 3), (1,)]
    assert verdict.sides[1].what == "all_reduce dtype=float32 shape=[3] op=sum"
    gang.barrier()
    assert gang.diagnose().is_healthy


@pytest.mark.parametrize("patience", [0.0, -1.0, 1e9])
def test_a_patience_that_is_no_time_is_refused(gang: Gang, patience: float) -> None:
    with pytest.raises(InvalidArgumentError, match="patience"):
        gang.diagnose(patience=patience)


APP = """
import rankbridge_server

@rankbridge_server.function
def train(path: str):
    return next_batch(path)

def next_batch(path):
    with open(path) as data:
        return data.read()
"""


def doctor(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [RANKBRIDGE, "doctor", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


@pytest.mark.sampled
def test_a_function_that_does_not_return_is_found_with_its_line_also_by_the_command(tmp_path: Path) -> None:
    app, fifo = tmp_path / "app.py", tmp_path / "data"
    app.write_text(APP)
    os.mkfifo(fifo)
    with (
        up(tmp_path, SIZE, "gloo", [*PATIENT, "--load", str(app), "--on-rank-exit", "leave"]) as running,
        rankbridge.connect(running.description, timeout=30.0) as gang,
        ThreadPoolExecutor(1) as thread,
    ):
        batch = thread.submit(gang[2].call, "train", str(fifo))
        until(lambda: bool(gang[2].pending().operations))
        waiting = [gang[rank].start("barrier", timeout=30.0, operation_id="all") for rank in (0, 1, 3)]
        verdict = found(gang, "never_called", (0, 1, 3))
        (culprit,) = verdict.culprits
        assert culprit.rank == 2
        assert culprit.condition in ("blocked_read", "lock", "unknown")
        assert [(it.function, Path(it.file).name) for it in culprit.stack] == [
            ("next_batch", "app.py"),
            ("train", "app.py"),
        ]
        said = doctor("--endpoints", str(running.endpoints_file), "--patience", str(PATIENCE_S))
        assert (said.returncode, said.stderr) == (1, "")
        assert said.stdout.startswith("NEVER_CALLED: rank 2 has not called barrier world, is ")
        assert "in next_batch app.py:9 < train app.py:6" in said.stdout
        # What is kept of it gives the same verdict later, and elsewhere.
        bundle = tmp_path / "bundle.json"
        kept = doctor(
            "--endpoints", str(running.endpoints_file), "--patience", str(PATIENCE_S), "--bundle", str(bundle)
        )
        assert kept.returncode == 1
        again = doctor("--read", str(bundle), "--patience", str(PATIENCE_S))
        assert (again.returncode, again.stderr) == (1, "")
        assert "in next_batch app.py:9 < train app.py:6" in again.stdout
        # A process of the gang names it, too.
        of_process = doctor(str(running.pids[0]), "--patience", str(PATIENCE_S), "--json")
        assert json.loads(of_process.stdout)["culprits"][0]["stack"][0]["line"] == 9
        fifo.write_text("x")
        waiting.append(gang[2].start("barrier", timeout=30.0, operation_id="all"))
        for each in waiting:
            each.result()
        assert batch.result() == "x"
        assert doctor("--endpoints", str(running.endpoints_file)).returncode == 0
        os.kill(running.pids[1], signal.SIGKILL)
        verdict = found(gang, "never_called")
        assert [(it.rank, it.condition) for it in verdict.culprits] == [(1, "dead")]
        assert "rank 1 was lost" in verdict.summary


def test_the_evidence_of_a_gang_that_has_lost_a_rank_can_be_kept(gang: Gang, tmp_path: Path) -> None:
    bundle = tmp_path / "bundle.json"
    bundle.write_text(gang.evidence())
    assert doctor("--read", str(bundle)).returncode == 0
    content = json.loads(bundle.read_text())
    del content["evidence"][2]
    bundle.write_text(json.dumps(content, separators=(",", ":")))
    # Nobody waits for the rank of which nothing is known.
    assert doctor("--read", str(bundle)).returncode in (0, 3)


@pytest.mark.parametrize(
    "change",
    [
        lambda text: text[: len(text) // 2],
        lambda text: text.replace('"rank"', '"rink"'),
        lambda text: text.replace('"at":', '"at":"x'),
        lambda text: text.replace('"evidence":[', '"evidence":[5,'),
        lambda text: text[: text.index('"evidence":[') + 12] + "]}",
    ],
    ids=["cut off", "a strange field", "no time", "a number", "no rank"],
)
def test_a_bundle_of_a_gang_that_is_wrong_is_refused(
    fake4: RunningGang, tmp_path: Path, change: Callable[[str], str]
) -> None:
    bundle = tmp_path / "bundle.json"
    with rankbridge.connect(fake4.description) as gang:
        bundle.write_text(change(gang.evidence()))
    refused = doctor("--read", str(bundle))
    assert refused.returncode == 2
    assert refused.stderr.startswith("rankbridge doctor: ")
    assert "Traceback" not in refused.stderr


TRAINING = """
import ctypes
import os

import rankbridge_server
import torch
import torch.distributed as dist


def next_batch(path):
    with open(path) as data:
        return data.read()


@rankbridge_server.function
def train(path: str):
    gradient = torch.zeros(4)
    for step in range(1, 6):
        if dist.get_rank() == 2 and step == 4:
            next_batch(path)
        dist.all_reduce(gradient)
    return step


def read_in_c(fifo):
    # With Python's lock, which `ctypes.CDLL` would give back.
    ctypes.PyDLL(None).read(fifo, ctypes.create_string_buffer(1), ctypes.c_size_t(1))


@rankbridge_server.function
def keep_the_lock(path: str):
    for step in range(1, 6):
        if dist.get_rank() == 2 and step == 4:
            # Opened for both, so that it does not wait here.
            read_in_c(os.open(path, os.O_RDWR))
        dist.all_reduce(torch.zeros(4))
    return step


@rankbridge_server.function
def differ(path: str):
    for _ in range(3):
        dist.all_reduce(torch.zeros(4))
    if dist.get_rank() == 1:
        dist.barrier()
    else:
        dist.all_reduce(torch.zeros(4))
"""


@pytest.fixture
def training(tmp_path: Path) -> Iterator[RunningGang]:
    app = tmp_path / "app.py"
    app.write_text(TRAINING)
    # A rank that says nothing is not lost at once.
    with up(tmp_path, SIZE, "gloo", ["--load", str(app), "--heartbeat-misses", "600"]) as running:
        yield running


def test_a_function_that_keeps_the_others_waiting_in_a_collective_is_found(
    training: RunningGang, tmp_path: Path
) -> None:
    fifo = tmp_path / "data"
    os.mkfifo(fifo)
    with rankbridge.connect(training.description, timeout=60.0) as gang:
        steps = gang.function("train").start(str(fifo))
        verdict = found(gang, "never_called", (0, 1, 3))
        assert [it.rank for it in verdict.culprits] == [2]
        assert verdict.call == "all_reduce world#4"
        assert [(it.function, Path(it.file).name) for it in verdict.culprits[0].stack] == [
            ("next_batch", "app.py"),
            ("train", "app.py"),
        ]
        assert sorted(it.rank for it in verdict.waits) == [0, 1, 3]
        fifo.write_text("x")
        assert steps.result() == [5] * SIZE
        assert gang.diagnose().is_healthy


def test_collectives_of_a_function_that_differ_are_found_and_are_forgotten_with_their_generation(
    training: RunningGang,
) -> None:
    with rankbridge.connect(training.description, timeout=60.0) as gang:
        differing = gang.function("differ").start("")
        verdict = found(gang, "mismatch_kind", range(SIZE))
        assert [it.rank for it in verdict.culprits] == [1]
        assert {it.ranks for it in verdict.sides} == {(1,), (0, 2, 3)}
        gang.form()
        with pytest.raises(GangError):
            differing.result()
        assert gang.diagnose(patience=PATIENCE_S).is_healthy


@pytest.mark.skipif(stacks.program() is None, reason="py-spy is not installed")
def test_of_a_rank_in_which_nothing_can_run_the_line_is_read_from_outside(
    training: RunningGang, tmp_path: Path
) -> None:
    fifo = tmp_path / "data"
    os.mkfifo(fifo)
    with rankbridge.connect(training.description, timeout=60.0) as gang:
        steps = gang.function("keep_the_lock").start(str(fifo))
        verdict = found(gang, "never_called", (0, 1, 3))
        (culprit,) = verdict.culprits
        assert (culprit.rank, culprit.condition, culprit.pid) == (2, "gil_held", training.pids[2])
        assert culprit.host
        assert [(it.function, Path(it.file).name) for it in culprit.stack] == [
            ("read_in_c", "app.py"),
            ("keep_the_lock", "app.py"),
        ]
        fifo.write_text("x")
        assert steps.result() == [5] * SIZE
