"""Ranks among the processes of a host, which are those that each test has started."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator

import pytest

from rankbridge_server.job.outside import processes
from rankbridge_server.job.outside.processes import NoJob, find

# It says so when its environment is there.
SCRIPT = "import sys; print(flush=True); sys.stdin.read()"
Start = Callable[..., int]


@pytest.fixture
def start(monkeypatch: pytest.MonkeyPatch) -> Iterator[Start]:
    """Starts a process with these variables; gives its pid. No other processes are there."""
    started: list[subprocess.Popen[bytes]] = []

    def run(**environment: str) -> int:
        process = subprocess.Popen(
            [sys.executable, "-c", SCRIPT], env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        started.append(process)
        assert process.stdout is not None
        process.stdout.readline()
        return process.pid

    # Other tests may have left a record in this process.
    monkeypatch.setattr(processes, "_recorded", lambda pid: None)
    monkeypatch.setattr(processes, "_pids", lambda: [os.getpid(), *(it.pid for it in started)])
    yield run
    for it in started:
        it.communicate()


def of_torchrun(rank: int, port: int = 2000) -> dict[str, str]:
    return {**by_hand(rank, port), "TORCHELASTIC_RUN_ID": "none"}


def by_hand(rank: int, port: int = 3000) -> dict[str, str]:
    return {"RANK": str(rank), "WORLD_SIZE": "2", "MASTER_ADDR": "localhost", "MASTER_PORT": str(port)}


def test_the_only_job_is_found_in_the_order_of_its_ranks(start: Start) -> None:
    pids = [start(**by_hand(1)), start(**by_hand(0))]
    assert [(it.rank, it.pid, it.world_size) for it in find()] == [(0, pids[1], 2), (1, pids[0], 2)]


def test_of_several_jobs_one_must_be_named(start: Start) -> None:
    pids = [start(**by_hand(0)), start(**of_torchrun(0)), start(**of_torchrun(1))]
    with pytest.raises(NoJob, match=f"2 jobs run on this host: name one .*: {pids[0]}, {pids[1]}"):
        find()
    assert [it.pid for it in find([pids[2]])] == pids[1:]


def test_the_only_job_of_torchrun_is_found_beside_others(start: Start) -> None:
    start(**by_hand(0))
    pid = start(**of_torchrun(0))
    assert [it.pid for it in find(by_torchrun=True)] == [pid]


def test_of_several_jobs_of_torchrun_one_must_be_named(start: Start) -> None:
    pids = [start(**of_torchrun(0)), start(**of_torchrun(0, port=2001))]
    with pytest.raises(NoJob, match=f"2 jobs run on this host: name one .*: {pids[0]}, {pids[1]}"):
        find(by_torchrun=True)


def test_without_a_rank_the_error_says_what_was_looked_for(start: Start) -> None:
    start(RANK="0")
    with pytest.raises(NoJob, match="no process has RANK, WORLD_SIZE and MASTER_PORT in its environment"):
        find()
    start(**by_hand(0))
    with pytest.raises(NoJob, match="RANK, WORLD_SIZE, TORCHELASTIC_RUN_ID and MASTER_PORT"):
        find(by_torchrun=True)


def test_a_process_that_is_no_rank_and_has_started_none_is_refused(start: Start) -> None:
    pid = start()
    with pytest.raises(NoJob, match=f"process {pid} is no rank"):
        find([pid])


def test_what_a_rank_that_records_has_started_is_not_the_rank(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    start(**by_hand(1))
    other = start(**by_hand(0))
    monkeypatch.setattr(processes, "_recorded", {os.getpid(): (1, 2)}.get)
    assert [it.pid for it in find()] == [other]


def test_what_has_torch_and_not_the_jobs_store_is_not_the_rank_if_who_started_it_has_that(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    start(**by_hand(1, port=3000))
    other = start(**by_hand(0, port=3001))
    monkeypatch.setattr(processes, "_has_torch", lambda pid: True)
    monkeypatch.setattr(processes, "has_connection", lambda pid, port: (pid, port) == (os.getpid(), 3000))
    assert [it.pid for it in find()] == [other]
