"""`rankbridge up`: gangs that start, serve, and end whole."""

from __future__ import annotations

import os
import select
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from tests.support.gangs import RANKBRIDGE, START_TIMEOUT_S, RunningGang, up
from tests.support.processes import stop, watched
from tests.support.waiting import until

import rankbridge
from rankbridge import Gang

# Bounds hangs and nothing else.
END_TIMEOUT_S = 60


@pytest.fixture
def own(tmp_path: Path) -> Iterator[RunningGang]:
    """A gang that one test may break, started as people start it."""
    with up(tmp_path, 3, own=True) as gang:
        yield gang


@pytest.fixture
def doomed(tmp_path: Path) -> Iterator[RunningGang]:
    """A gang of which one test may break ranks."""
    with up(tmp_path, 3) as gang:
        yield gang


def numbers(fetched: rankbridge.Array) -> list[float]:
    assert isinstance(fetched, np.ndarray)
    elements: list[float] = fetched.tolist()
    return elements


def socket_dir(gang: RunningGang) -> Path:
    return Path(gang.targets[0].removeprefix("unix:")).parent


def test_the_endpoints_file_tells_how_to_reach_every_rank_in_two_ways(gloo4: RunningGang) -> None:
    assert gloo4.description["generation"] == 1
    assert [rank["rank"] for rank in gloo4.description["ranks"]] == [0, 1, 2, 3]
    for target in (gloo4.targets, gloo4.tcp):
        with rankbridge.connect(target) as gang:
            assert [status.pid for status in gang.status()] == gloo4.pids
            gang.barrier()


@pytest.mark.sampled
@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGKILL])
def test_every_rank_ends_with_the_agent(own: RunningGang, how: signal.Signals) -> None:
    with watched(own.pids) as ranks:
        own.process.send_signal(how)
        assert ranks.alive_after(END_TIMEOUT_S) == []
    status = own.process.wait(END_TIMEOUT_S)
    if how is signal.SIGKILL:
        assert status == -signal.SIGKILL
    else:
        assert status == (0 if how is signal.SIGTERM else 128 + how)
        assert not own.endpoints_file.exists()
        assert not socket_dir(own).exists()


def test_a_stopped_rank_ends_with_a_killed_agent_too(own: RunningGang) -> None:
    with watched(own.pids) as ranks:
        stop(own.pids[1])
        own.process.kill()
        assert ranks.alive_after(END_TIMEOUT_S) == []


def test_a_stopped_rank_does_not_keep_the_agent_from_ending(own: RunningGang) -> None:
    with watched(own.pids) as ranks:
        stop(own.pids[1])
        own.process.terminate()
        assert own.process.wait(END_TIMEOUT_S) == 0
        assert ranks.alive_after(0) == []


def test_the_gang_ends_when_standard_input_is_closed(own: RunningGang) -> None:
    assert own.process.stdin is not None
    with watched(own.pids) as ranks:
        own.process.stdin.close()
        assert own.process.wait(END_TIMEOUT_S) == 0
        assert ranks.alive_after(0) == []


def test_sockets_of_a_killed_agent_are_swept_by_the_next(own: RunningGang, tmp_path: Path) -> None:
    left = socket_dir(own)
    own.process.kill()
    own.process.wait(END_TIMEOUT_S)
    assert left.exists()
    with up(tmp_path, 1, "fake") as other:
        assert not left.exists()
        assert socket_dir(other).exists()


@pytest.mark.parametrize("moment", [0.0, 0.2, 0.5, 1.0, 1.5, 2.0])
def test_an_interrupt_at_any_moment_of_the_start_leaves_nothing(tmp_path: Path, moment: float) -> None:
    # What interrupts Python before it reads our code is Python's own: it ends with 1, or goes on.
    python = [sys.executable, "-X", "importtime"]
    command = [*python, RANKBRIDGE, "up", "--size", "2", "--endpoints-file", str(tmp_path / "e.json")]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True, text=True
    ) as process:
        assert process.stderr
        assert any("rankbridge_server" in line for line in process.stderr)
        # The moment is the fault that is tried; nothing is waited for.
        select.select([], [], [], moment)
        process.send_signal(signal.SIGINT)
        try:
            process.communicate(timeout=END_TIMEOUT_S)
        finally:
            process.kill()
    assert process.returncode in (130, -signal.SIGINT)
    assert not (tmp_path / "e.json").exists()
    with pytest.raises(ProcessLookupError):
        os.killpg(process.pid, 0)


@pytest.mark.parametrize("lost", [0, 2])
def test_a_killed_rank_fails_every_pending_call_at_once_and_is_named(doomed: RunningGang, lost: int) -> None:
    survivors = [rank for rank in range(3) if rank != lost]
    with rankbridge.connect(doomed.description, session=False) as gang:
        refs = gang.put([np.full(1000, rank, np.float32) for rank in range(3)])
        pending = [
            gang[rank].start("all_reduce", refs[rank], in_place=True, timeout=60) for rank in survivors
        ]
        _until_pending(gang, survivors)
        os.kill(doomed.pids[lost], signal.SIGKILL)
        for it in pending:
            with pytest.raises(rankbridge.PeerLostError) as error:
                it.result()
            assert [detail.rank for detail in error.value.ranks] == [lost]
        for rank in survivors:
            assert numbers(gang[rank].get(refs[rank])) == [rank] * 1000
            with pytest.raises(rankbridge.StaleGenerationError):
                gang[rank].barrier()


def _until_pending(gang: Gang, ranks: list[int]) -> None:
    until(lambda: all(gang[rank].status().pending_operations == 1 for rank in ranks))


def test_survivors_form_a_smaller_gang_and_keep_their_tensors(doomed: RunningGang) -> None:
    with rankbridge.connect(doomed.targets, session=False) as gang:
        refs = gang.put([np.full(3, rank + 1, np.int64) for rank in range(3)])
    with watched([doomed.pids[1]]) as lost:
        os.kill(doomed.pids[1], signal.SIGKILL)
        assert lost.alive_after(END_TIMEOUT_S) == []
    with rankbridge.connect([doomed.targets[0], doomed.targets[2]], session=False) as gang:
        assert gang.form().generation == 2
        result = [gang[0].start("all_reduce", refs[0]), gang[1].start("all_reduce", refs[2])]
        assert [numbers(gang[rank].get(it.result())) for rank, it in enumerate(result)] == [[4] * 3] * 2


def test_two_gangs_on_one_host_do_not_meet(tmp_path: Path) -> None:
    with up(tmp_path, 2, "fake") as one, up(tmp_path, 3, "fake") as other:
        for running in (one, other):
            with rankbridge.connect(running.description) as gang:
                refs = gang.put([np.ones(1, np.float32)] * running.size)
                assert numbers(gang.get(gang.all_reduce(refs))[0]) == [running.size]


def test_garbage_on_the_port_is_answered_by_nothing_but_a_closed_connection(gloo4: RunningGang) -> None:
    for garbage in (b"\x00" * 100, b"GET / HTTP/1.1\r\n\r\n", os.urandom(4096)):
        host, port = gloo4.tcp_targets[0].split(":")
        with socket.create_connection((host, int(port)), END_TIMEOUT_S) as stranger:
            stranger.sendall(garbage)
            stranger.shutdown(socket.SHUT_WR)
            try:
                while stranger.recv(65536):
                    pass
            except ConnectionResetError:
                continue
    with rankbridge.connect(gloo4.description) as gang:
        gang.barrier()


@pytest.mark.sampled
def test_a_tensor_of_one_gibibyte_travels_there_and_back(gloo2: RunningGang) -> None:
    words = np.arange(2**28, dtype=np.uint32)
    with rankbridge.connect(gloo2.description) as gang:
        fetched = gang[1].get(gang[1].put(words, timeout=120), timeout=120)
    assert isinstance(fetched, np.ndarray)
    assert np.array_equal(fetched, words)


def test_a_tensor_over_the_limit_is_refused_before_it_is_sent(tmp_path: Path) -> None:
    with (
        up(tmp_path, 1, "fake", ["--max-bytes", "1000000"]) as running,
        rankbridge.connect(running.description) as gang,
    ):
        with pytest.raises(rankbridge.ResourceExhaustedError) as error:
            gang[0].put(np.zeros(2**26, np.uint8))
        assert "1000000 bytes" in error.value.expected
        assert gang.status()[0].sessions[-1].refs == 0
        gang[0].put(np.zeros(1_000_000, np.uint8))


def test_a_size_of_no_rank_is_refused() -> None:
    result = subprocess.run(
        [RANKBRIDGE, "up", "--size", "0"],
        capture_output=True,
        text=True,
        timeout=START_TIMEOUT_S,
        check=False,
    )
    assert (result.returncode, "must be 1 or more" in result.stderr) == (2, True)


@pytest.mark.sampled
def test_ranks_under_torchrun_form_a_gang_of_their_own(tmp_path: Path) -> None:
    endpoints = tmp_path / "endpoints.json"
    command = [
        *(str(Path(sys.executable).with_name("torchrun")), "--nproc-per-node", "2", "--master-port", "0"),
        *("--rdzv-backend", "c10d", "--rdzv-endpoint", "127.0.0.1:0", "--no-python"),
        *(RANKBRIDGE, "rank", "--endpoints-file", str(endpoints)),
    ]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        try:
            assert process.stdout is not None
            assert any(line.startswith("ready: 2 ranks") for line in process.stdout)
            with rankbridge.connect(endpoints) as gang:
                refs = gang.put([np.array([1.0, rank], np.float32) for rank in range(2)])
                assert [numbers(it) for it in gang.get(gang.all_reduce(refs))] == [[2.0, 1.0]] * 2
                pids = [status.pid for status in gang.status()]
            with watched(pids) as ranks:
                process.terminate()
                assert ranks.alive_after(END_TIMEOUT_S) == []
        finally:
            process.terminate()


def test_a_standard_input_that_never_closes_is_refused() -> None:
    command = [RANKBRIDGE, "up", "--size", "1", "--backend", "fake", "--exit-on-stdin-close"]
    result = subprocess.run(
        command,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=START_TIMEOUT_S,
        check=False,
    )
    assert (result.returncode, "standard input that can be closed" in result.stderr) == (2, True)


def test_a_rank_without_its_environment_names_the_variable() -> None:
    environ = {key: value for key, value in os.environ.items() if key not in ("RANK", "WORLD_SIZE")}
    result = subprocess.run(
        [RANKBRIDGE, "rank"],
        capture_output=True,
        text=True,
        env=environ,
        timeout=START_TIMEOUT_S,
        check=False,
    )
    assert (result.returncode, "RANK is not set" in result.stderr) == (1, True)
