"""Calls of objects that look like vLLM's GroupCoordinator, which may pass by torch.distributed."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from tests.diagnose.jobs import descendants

from rankbridge_server.job.outside import rings

BIN = Path(sys.executable).parent
JOB = Path(__file__).parents[1] / "support" / "coordinated" / "job.py"
LINES = JOB.read_text().splitlines()
SIZE = 4
WAIT_S = 30.0
ENVIRON = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(Path(__file__).parents[2])}


def command(record: Path | None, how: str) -> list[str]:
    """Of a job that is watched, into this record, or is not."""
    watch = [] if record is None else [str(BIN / "rankbridge"), "watch", "--record", str(record), "--"]
    torchrun = [str(BIN / "torchrun"), "--nproc-per-node", str(SIZE), "--rdzv-backend", "c10d"]
    return [*watch, *torchrun, "--rdzv-endpoint", "127.0.0.1:0", str(JOB), how]


def line(text: str, after: str = "") -> int:
    """Number of the first line of the job that has this, after one that has that."""
    first = next(at for at, it in enumerate(LINES) if after in it)
    return next(at for at, it in enumerate(LINES[first:], first + 1) if text in it)


def verdict(folder: Path, how: str, *, attached: bool = False) -> Mapping[str, Any]:
    """What the doctor says of a job in which this goes wrong: of its records, or of its ranks."""
    endpoints = folder / "endpoints.json"
    environ = {**ENVIRON, "RANKBRIDGE_ENDPOINTS_FILE": str(endpoints)} if attached else ENVIRON
    with subprocess.Popen(
        command(None if attached else folder / "record", how),
        env=environ,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as job:
        try:
            assert job.stdout is not None
            assert job.stdout.readline() in ("wrong\n", "moves\n")
            whom = ["--endpoints", str(endpoints)] if attached else [str(job.pid)]
            asked = [str(BIN / "rankbridge"), "doctor", *whom, "--json"]
            if how != "moves":
                asked += ["--patience", "0.1"]
            deadline = time.monotonic() + WAIT_S
            while True:
                said = subprocess.run(asked, capture_output=True, text=True, check=False, timeout=100)
                found: Mapping[str, Any] = json.loads(said.stdout)
                # A rank that has just begun to sleep is not late yet, or the others have not come yet.
                is_early = found["kind"] in ("healthy", "unknown")
                if how == "moves" or not is_early or time.monotonic() > deadline:
                    return found
        finally:
            for pid in [*descendants(job.pid), job.pid]:
                # A launcher ends the others when it sees that one is gone.
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)


@pytest.mark.parametrize(
    ("how", "rank", "call", "site"),
    [
        ("sum", 2, "all_reduce tp:0#34", line("total = tp.all_reduce")),
        pytest.param("barrier", 1, "barrier tp:0#35", line("tp.barrier()"), marks=pytest.mark.sampled),
        pytest.param("send", 2, "recv from rank 2 tag 0 #12", line("pp.recv"), marks=pytest.mark.sampled),
    ],
)
def test_a_rank_that_does_not_come_is_named_with_the_line(
    tmp_path: Path, how: str, rank: int, call: str, site: int
) -> None:
    found = verdict(tmp_path, how)
    assert (found["kind"], [it["rank"] for it in found["culprits"]]) == ("never_called", [rank]), found
    assert found["culprits"][0]["condition"] == "asleep"
    assert any(it["line"] == line("asleep()", f'"{how}"') for it in found["culprits"][0]["stack"])
    # Others may have waited for longer, in a later call.
    assert {it["site"]["line"] for it in found["waits"] if it["call"] == call} == {site}


@pytest.mark.sampled
@pytest.mark.parametrize(
    ("how", "rank", "call", "site"),
    [
        ("sum", 2, "all_reduce tp:0#34", line("total = tp.all_reduce")),
        ("send", 2, "recv from rank 2 tag 0 #12", line("pp.recv")),
        ("inside", 3, "broadcast world#", 0),
    ],
)
def test_ranks_that_have_attached_say_it_too(
    tmp_path: Path, how: str, rank: int, call: str, site: int
) -> None:
    found = verdict(tmp_path, how, attached=True)
    assert (found["kind"], [it["rank"] for it in found["culprits"]]) == ("never_called", [rank]), found
    assert any(it["line"] == line("asleep()", f'"{how}"') for it in found["culprits"][0]["stack"])
    if site:
        assert {it["site"]["line"] for it in found["waits"] if it["call"] == call} == {site}, found


@pytest.mark.sampled
def test_of_a_job_that_has_attached_and_moves_nobody_is_blamed(tmp_path: Path) -> None:
    found = verdict(tmp_path, "moves", attached=True)
    assert (found["kind"], found["culprits"]) == ("healthy", []), found


@pytest.mark.sampled
def test_a_rank_that_stays_inside_of_a_call_is_named_by_what_the_others_wait_for(tmp_path: Path) -> None:
    found = verdict(tmp_path, "inside")
    assert (found["kind"], [it["rank"] for it in found["culprits"]]) == ("never_called", [3]), found
    assert any(it["line"] == line("time.sleep(WRONG_S)") for it in found["culprits"][0]["stack"])


@pytest.mark.sampled
def test_of_a_job_that_moves_nobody_is_blamed_and_calls_are_recorded_with_what_they_ask_for(
    tmp_path: Path,
) -> None:
    found = verdict(tmp_path, "moves")
    assert (found["kind"], found["culprits"]) == ("healthy", []), found
    records = rings.in_directory(tmp_path / "record")
    assert [it.rank for it in records] == list(range(SIZE))
    for record in records:
        pair = (0, 1) if record.rank < 2 else (2, 3)
        groups = {it.description: it for it in record.groups}
        assert (groups["tp:0"].ranks, groups["pp:0"].ranks) == ((0, 1, 2, 3), pair)
        # Before those that go on and on.
        tp = [it for it in record.calls if it.group == groups["tp:0"].name][:37]
        assert [it.number for it in tp] == list(range(1, 38))
        assert [it.kind for it in tp[:3]] == ["all_reduce", "barrier", "broadcast_tensor_dict"]
        assert (tp[0].dtypes, tp[0].shapes, tp[2].root) == (("float32",), ((3,),), 0)
        assert all(it.returned_at is not None and it.done for it in tp)
        assert {(str(it.site)) for it in tp} == {
            f"main job.py:{line(it)}"
            for it in ("= tp.all_reduce", "tp.barrier()", "tp.broadcast_tensor_dict", "tp.all_gather")
        }
        p2p = [it for it in record.calls if it.is_p2p]
        kind, peer = ("send", pair[1]) if record.rank == pair[0] else ("recv", pair[0])
        assert [(it.kind, it.peer, it.number, it.shapes) for it in p2p] == [
            (kind, peer, number, ((2,),)) for number in range(1, 13)
        ]
        # What torch is asked within is in torch's groups, with numbers of its own.
        inner = [it for it in record.calls if it.group not in {groups["tp:0"].name, groups["pp:0"].name}]
        assert {it.kind for it in inner} == {"broadcast", "barrier", "all_gather"}
