"""`rankbridge doctor FOLDER`: verdicts on gangs whose ranks are dead, from the records that they have left."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.conftest import PATIENT
from tests.support.gangs import RANKBRIDGE, RunningGang, up
from tests.support.processes import stop
from tests.support.waiting import until

import rankbridge
from rankbridge import Gang
from rankbridge.errors import RankBridgeError
from rankbridge_server.core.processes import GONE, look, started

SIZE = 3
PATIENCE_S = 0.3


@contextmanager
def gang(folder: Path, patience: Sequence[str] = PATIENT) -> Iterator[tuple[RunningGang, Gang]]:
    """A gang that keeps its records in the folder, and stays as it is when ranks die."""
    folder.parent.mkdir(exist_ok=True)
    options = ["--observe", str(folder), "--on-rank-exit", "leave", *patience]
    with (
        up(folder.parent, SIZE, "gloo", options) as running,
        rankbridge.connect(running.endpoints_file, timeout=30.0, session=False) as it,
    ):
        yield running, it


def kill(running: RunningGang, ranks: range | tuple[int, ...] = range(SIZE)) -> None:
    """Kills ranks; they are dead."""
    pids = [running.pids[it] for it in ranks]
    began = {it: started(it) for it in pids}
    # None of them is to see another's end.
    for it in pids:
        os.kill(it, signal.SIGSTOP)
    for it in pids:
        stop(it)
    for it in pids:
        os.kill(it, signal.SIGKILL)
    until(lambda: all(is_dead(it, began[it]) for it in pids))


def is_dead(pid: int, began: int) -> bool:
    return started(pid) != began or look(pid).state in (GONE, "Z", "X")


def doctor(*arguments: str) -> tuple[int, dict[str, Any]]:
    command = [RANKBRIDGE, "doctor", "--json", "--patience", str(PATIENCE_S), *arguments]
    found = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert found.stdout, found.stderr
    return found.returncode, json.loads(found.stdout)


def waiting(it: Gang, ranks: Sequence[int], seconds: float) -> bool:
    """Whether an operation has been pending for so long on each of these ranks."""
    return all(
        any(
            one.done is None and one.announced is not None and growth.time - one.called > seconds
            for growth in [next(iter_growth(it, rank))]
            for one in growth.pending
        )
        for rank in ranks
    )


def iter_growth(it: Gang, rank: int) -> Iterator[rankbridge.RecordGrowth]:
    with it[rank].watch_record() as watch:
        yield next(watch)


def killed_while_they_wait(running: RunningGang, it: Gang, seconds: float) -> None:
    """Kills all ranks once two have waited so long for rank 1."""
    began = time.monotonic()
    it.barrier()
    # Who was late once is waited for twice as long.
    seconds += 2 * (time.monotonic() - began)
    pending = [it[rank].start("barrier", timeout=30.0) for rank in (0, 2)]
    until(lambda: waiting(it, (0, 2), seconds))
    kill(running)
    for one in pending:
        with pytest.raises(RankBridgeError):
            one.result()


def test_all_ranks_are_killed_while_they_wait_for_one(tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    with gang(folder) as (running, it):
        killed_while_they_wait(running, it, 3 * PATIENCE_S)
        status, verdict = doctor(str(folder))
        bundle = tmp_path / "bundle.json"
        assert doctor("--bundle", str(bundle), str(folder))[0] == 1
    assert (status, verdict["kind"], verdict["call"]) == (1, "never_called", "barrier world")
    assert [(one["rank"], one["condition"], one["pid"]) for one in verdict["culprits"]] == [
        (1, "idle", running.pids[1])
    ]
    assert "had not called barrier world" in verdict["summary"]
    assert {(one["rank"], *one["waits_for"]) for one in verdict["waits"]} == {(0, 1), (2, 1)}
    for one in verdict["waits"]:
        assert one["seconds"] >= PATIENCE_S
        assert one["site"]["file"].endswith("test_dead_gangs.py")
    status, read = doctor("--read", str(bundle))
    assert (status, read["summary"], read["waits"]) == (1, verdict["summary"], verdict["waits"])


def test_one_is_killed_and_then_the_others(tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    with gang(folder) as (running, it):
        tensors = it.put([np.ones(4, np.float32)] * SIZE)
        pending = [it[rank].start("barrier", timeout=30.0) for rank in (0, 1)]
        until(lambda: waiting(it, (0, 1), 0.05))
        kill(running, (2,))
        for one in pending:
            with pytest.raises(RankBridgeError, match="rank 2 is lost"):
                one.result()
        with pytest.raises(RankBridgeError):
            it.all_reduce(tensors)
        status, alive = doctor(str(folder))
        assert (status, [one["rank"] for one in alive["culprits"]]) == (1, [2])
        kill(running, (0, 1))
        status, dead = doctor(str(folder))
    for verdict in (alive, dead):
        assert verdict["kind"] == "never_called"
        assert [(one["rank"], one["condition"], one["pid"]) for one in verdict["culprits"]] == [
            (2, "dead", running.pids[2])
        ]
        assert verdict["summary"].startswith("rank 2 was lost: ")
        assert {(one["rank"], one["call"], *one["waits_for"]) for one in verdict["waits"]} == {
            (0, "barrier world", 2),
            (1, "barrier world", 2),
        }
        assert all(one["site"]["file"].endswith("test_dead_gangs.py") for one in verdict["waits"])
    assert status == 1


def test_nobody_is_blamed_where_nobody_waited(tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    with gang(folder) as (running, it):
        it.barrier()
        kill(running)
        status, verdict = doctor(str(folder))
    assert (status, verdict["kind"], verdict["culprits"]) == (3, "unknown", [])
    assert [one.partition(":")[0] for one in verdict["evidence"]] == ["rank 0", "rank 1", "rank 2"]
    assert all("last sign of life at" in one and "without a call" in one for one in verdict["evidence"])


def test_a_rank_that_was_stopped_before_is_named(tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    with gang(folder, patience=()) as (running, it):
        it.barrier()
        os.kill(running.pids[1], signal.SIGSTOP)
        pending = [it[rank].start("barrier", timeout=30.0) for rank in (0, 2)]
        for one in pending:
            with pytest.raises(RankBridgeError, match="rank 1 is lost"):
                one.result()
        kill(running)
        status, verdict = doctor(str(folder))
    assert (status, [one["rank"] for one in verdict["culprits"]]) == (1, [1])


def test_a_gang_that_has_ended_in_order_is_healthy_and_the_next_one_has_records_of_its_own(
    tmp_path: Path,
) -> None:
    folder = tmp_path / "folder"
    with gang(folder) as (_, it):
        it.barrier()
    status, verdict = doctor(str(folder))
    assert (status, verdict["kind"], verdict["summary"]) == (
        0,
        "healthy",
        "the gang has ended in order: every rank was asked to",
    )
    with up(tmp_path, SIZE - 1, "fake", ["--observe", str(folder)]):
        assert sorted(one.name for one in folder.glob("*.record")) == ["rank-0.record", "rank-1.record"]


def test_the_record_of_dead_ranks_is_shown_and_drawn_up_to_their_last_sign_of_life(tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    with gang(folder) as (running, it):
        killed_while_they_wait(running, it, 4 * PATIENCE_S)
    shown = json.loads(rankbridge_of("record", str(folder), "--json").stdout)
    assert shown["failures"] == {}
    assert [[one["done"] is None for one in shown["ranks"][rank]] for rank in "012"] == [
        [False, True],
        [False],
        [False, True],
    ]
    rows = rankbridge_of("record", str(folder), "--limit", "1").stdout.splitlines()
    assert len(rows) == 2
    assert "admission" in rows[1]
    drawn = tmp_path / "run.json"
    rankbridge_of("trace", str(folder), "-o", str(drawn))
    events = json.loads(drawn.read_text())["traceEvents"]
    (read,) = [one for one in events if one["name"] == "records read"]
    began = [one["ts"] for one in events if one["name"] == "barrier" and one["ph"] == "B"]
    assert len(began) == 2
    assert all(read["ts"] - it >= PATIENCE_S * 1e6 for it in began)


@pytest.mark.parametrize("command", [["doctor"], ["record"], ["trace", "-o", "run.json"]])
def test_a_folder_with_a_damaged_record_is_said_to_be(tmp_path: Path, command: list[str]) -> None:
    (tmp_path / "rank-0.record").write_bytes(b"nothing")
    found = rankbridge_of(*command, str(tmp_path), status=2 if command == ["doctor"] else 1)
    assert "rank-0.record is no record of a rank" in found.stderr


@pytest.mark.parametrize("command", [["record"], ["trace", "-o", "run.json"]])
def test_a_folder_without_records_is_said_to_be(tmp_path: Path, command: list[str]) -> None:
    assert "has no records" in rankbridge_of(*command, str(tmp_path), status=1).stderr
    assert "cannot be read" in rankbridge_of(*command, str(tmp_path / "none"), status=1).stderr


def rankbridge_of(*arguments: str, status: int = 0) -> subprocess.CompletedProcess[str]:
    done = subprocess.run([RANKBRIDGE, *arguments], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == status, done.stderr
    return done
