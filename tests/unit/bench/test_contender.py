"""Subjects' processes, and what is told of those that are not there."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from bench.contender import ROOT, Absent, Contender
from tests.support.processes import stop

STAND_INS = "tests.unit.bench.stand_ins"


@pytest.fixture
def steady(tmp_path: Path) -> Iterator[Contender]:
    with Contender("steady", "3", log=tmp_path, module=STAND_INS) as contender:
        contender.begun()
        yield contender


def test_a_subject_tells_what_it_can(steady: Contender) -> None:
    assert steady.versions == {"steady": "1.0"}
    assert steady.ways == {"calls": ["all_reduce_4B", "barrier", "broadcast_4MB", "put_1GiB"]}
    assert steady.missing == {"stream": "no streams", "calls/fetch_64MB": "no fetch"}


def test_a_block_has_a_time_for_each_call_and_what_it_used(steady: Contender) -> None:
    block = steady.block("calls", "barrier", 4)
    assert block.seconds == [3.0] * 4
    assert block.cpu > 0
    assert block.peak_bytes > 1 << 20


def test_a_call_that_fails_is_told_and_the_next_one_is_made(steady: Contender) -> None:
    with pytest.raises(Absent, match="ValueError: 2 calls too many"):
        steady.block("calls", "all_reduce_4B", 2)
    assert steady.block("calls", "barrier", 1).seconds == [3.0]


def test_a_subject_that_dies_can_do_nothing_more(steady: Contender) -> None:
    with pytest.raises(Absent, match="it has ended"):
        steady.block("calls", "broadcast_4MB", 1)
    assert steady.ways == {}


def test_a_peer_that_is_not_installed_is_named(tmp_path: Path) -> None:
    with Contender("absent", "2", log=tmp_path, module=STAND_INS) as contender:
        contender.begun()
    assert contender.missing == {"": "No module named 'a_peer_that_nobody_has'"}
    assert contender.ways == {}


def test_a_subject_that_does_not_start_is_told_with_its_last_words(tmp_path: Path) -> None:
    with Contender("nothing_of_the_kind", "2", log=tmp_path, module=STAND_INS) as contender:
        contender.begun()
    assert "nothing_of_the_kind" in contender.missing[""]


def state(pid: int) -> str:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]


def test_a_restless_subject_is_stopped_while_it_is_paused(tmp_path: Path) -> None:
    with Contender("restless", "2", log=tmp_path, module=STAND_INS) as contender:
        contender.begun()
        (pid,) = (int(version) for version in contender.versions.values())
        contender.pause()
        os.waitid(os.P_PID, pid, os.WSTOPPED | os.WNOWAIT)
        assert (contender.pauses, state(pid)) == (True, "T")
        contender.resume()
        assert contender.block("calls", "barrier", 1).seconds == [1.0]
        contender.pause()
    # It has ended, though it was stopped.
    assert not Path(f"/proc/{pid}").exists()


def test_a_subject_lets_its_processes_go_on_when_who_stopped_them_has_gone() -> None:
    command = [sys.executable, "-m", f"{STAND_INS}.keeper", "2"]
    with subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as subject:
        assert subject.stdin is not None
        assert subject.stdout is not None
        (kept,) = json.loads(subject.stdout.readline())["restless"]
        stop(kept)
        subject.stdin.close()
        try:
            assert subject.wait(20) == 0
        finally:
            subject.kill()
            with suppress(ProcessLookupError):
                os.kill(kept, signal.SIGCONT)
