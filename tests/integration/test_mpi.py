"""Gangs on MPI: started by the agent and by mpiexec, and what becomes of them when a rank is lost."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
from tests.support.gangs import RANKBRIDGE, START_TIMEOUT_S, RunningGang, up
from tests.support.proc import open_files
from tests.support.processes import watched
from tests.support.waiting import until

import rankbridge
from rankbridge import Gang

SIZE = 3
# Bounds hangs and nothing else.
END_TIMEOUT_S = 60


@pytest.fixture
def running(tmp_path: Path) -> Iterator[RunningGang]:
    with up(tmp_path, SIZE, "mpi") as it:
        yield it


@pytest.fixture
def gang(running: RunningGang) -> Iterator[Gang]:
    with rankbridge.connect(running.description, session=False) as it:
        yield it


def works(gang: Gang) -> bool:
    refs = gang.put([np.full(5, rank, np.int64) for rank in range(len(gang))])
    results = gang.get(gang.all_reduce(refs))
    gang.release(refs)
    expected = sum(range(len(gang)))
    return all(isinstance(it, np.ndarray) and it.tolist() == [expected] * 5 for it in results)


def test_a_generation_is_formed_again_and_again_with_its_groups(mpi4: RunningGang) -> None:
    with rankbridge.connect(mpi4.description) as gang:
        gang.new_group("tail", [2, 0])
        first = gang.form().generation
        for generation in range(first + 1, first + 20):
            assert gang.form().generation == generation
            assert works(gang)
            gang.barrier(group="tail")
        gang.destroy_group("tail")


@pytest.mark.parametrize(("lost", "how"), [(0, signal.SIGKILL), (2, signal.SIGSTOP)])
def test_survivors_of_a_lost_rank_are_told_and_form_a_smaller_gang(
    running: RunningGang, gang: Gang, lost: int, how: signal.Signals
) -> None:
    survivors = [rank for rank in range(SIZE) if rank != lost]
    refs = gang.put([np.full(3, rank + 1, np.int64) for rank in range(SIZE)])
    pending = [gang[rank].start("all_reduce", refs[rank], in_place=True, timeout=60) for rank in survivors]
    until(lambda: all(gang[rank].status().pending_operations == 1 for rank in survivors))
    os.kill(running.pids[lost], how)
    for it in pending:
        with pytest.raises(rankbridge.PeerLostError) as error:
            it.result()
        assert [detail.rank for detail in error.value.ranks] == [lost]
    with rankbridge.connect([running.targets[rank] for rank in survivors], session=False) as smaller:
        assert smaller.form().generation == 2
        assert works(smaller)
        sums = [
            smaller[at].start("all_reduce", refs[rank], operation_id="kept")
            for at, rank in enumerate(survivors)
        ]
        fetched = [smaller[at].get(it.result()) for at, it in enumerate(sums)]
        expected = [sum(rank + 1 for rank in survivors)] * 3
        assert all(isinstance(it, np.ndarray) and it.tolist() == expected for it in fetched)


def test_ranks_that_are_lost_in_operations_one_after_another_hang_nobody(running: RunningGang) -> None:
    left = list(range(SIZE))
    for lost in (1, 2):
        with rankbridge.connect([running.targets[rank] for rank in left], session=False) as gang:
            refs = gang.put([np.ones(8_000_000, np.float32)] * len(left))
            pending = [
                gang[at].start("all_reduce", refs[at], operation_id=f"sum-{lost}") for at in range(len(left))
            ]
            os.kill(running.pids[lost], signal.SIGKILL)
            for at, rank in enumerate(left):
                # Whether it was done before is left to chance, but not whether there is an answer.
                with suppress(rankbridge.PeerLostError, rankbridge.StaleGenerationError):
                    if rank != lost:
                        pending[at].result()
            gang.release([ref for ref, rank in zip(refs, left, strict=True) if rank != lost])
        left.remove(lost)
        with rankbridge.connect([running.targets[rank] for rank in left], session=False) as smaller:
            smaller.form()
            assert works(smaller)


def test_nothing_is_left_of_a_gang_whose_agent_is_killed(running: RunningGang) -> None:
    with watched(running.pids) as ranks:
        running.process.kill()
        assert ranks.alive_after(END_TIMEOUT_S) == []


def test_no_memory_that_ranks_share_has_a_name(mpi4: RunningGang) -> None:
    """A name would outlive a rank that is killed."""
    mapped = {
        line.split(maxsplit=5)[5]
        for pid in mpi4.pids
        for line in Path(f"/proc/{pid}/maps").read_text().splitlines()
        if "/dev/shm/" in line
    }
    assert mapped
    assert [name for name in mapped if Path(name).exists()] == []


def test_ranks_listen_for_nobody_but_controllers_and_sidecars(mpi4: RunningGang) -> None:
    """What MPI moves stays in memory that ranks share."""
    listening = []
    for pid in mpi4.pids:
        held = set(open_files(pid))
        sockets = [Path(f"/proc/net/{it}").read_text().splitlines()[1:] for it in ("tcp", "tcp6")]
        for fields in (line.split() for lines in sockets for line in lines):
            if fields[3] == "0A" and f"socket:[{fields[9]}]" in held:
                listening.append(int(fields[1].split(":")[1], 16))
    assert sorted(listening) == sorted(int(it.rpartition(":")[2]) for it in mpi4.tcp_targets)


def test_ranks_that_would_have_to_be_replaced_are_refused_at_the_start() -> None:
    result = subprocess.run(
        [RANKBRIDGE, "up", "--backend", "mpi", "--on-rank-exit", "replace"],
        capture_output=True,
        text=True,
        timeout=START_TIMEOUT_S,
        check=False,
    )
    assert (result.returncode, "cannot be had on the backend mpi" in result.stderr) == (2, True)


def test_without_mpi_the_command_says_what_to_install(tmp_path: Path) -> None:
    (tmp_path / "mpi4py.py").write_text("raise ImportError('not here')\n")
    result = subprocess.run(
        [RANKBRIDGE, "up", "--backend", "mpi"],
        capture_output=True,
        text=True,
        timeout=START_TIMEOUT_S,
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
        check=False,
    )
    assert (result.returncode, "rankbridge[server,mpi]" in result.stderr) == (1, True)


@pytest.mark.sampled
def test_ranks_under_mpiexec_form_a_gang_of_their_own(tmp_path: Path) -> None:
    endpoints = tmp_path / "endpoints.json"
    # The launcher of MPICH that only forks: it opens no port.
    mpiexec = str(Path(sys.executable).with_name("mpiexec.gforker"))
    command = [
        *(mpiexec, "-n", "2", RANKBRIDGE, "rank", "--backend", "mpi"),
        *("--endpoints-file", str(endpoints)),
    ]
    environ = {**os.environ, "UCX_TLS": "self,posix,cma"}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environ) as process:
        try:
            assert process.stdout is not None
            assert any(line.startswith("ready: 2 ranks on mpi") for line in process.stdout)
            with rankbridge.connect(endpoints) as gang:
                assert works(gang)
                assert [status.local_rank for status in gang.status()] == [0, 1]
                pids = [status.pid for status in gang.status()]
            with watched(pids) as ranks:
                process.terminate()
                assert ranks.alive_after(END_TIMEOUT_S) == []
        finally:
            process.terminate()
