"""Sockets at which callers may only observe: `--observe FOLDER`."""

from __future__ import annotations

import json
import re
import stat
import subprocess
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import grpc
import numpy as np
import pytest
from grpc_reflection.v1alpha import reflection_pb2, reflection_pb2_grpc
from tests.conftest import PATIENT
from tests.support.foreign_jobs import job, torchrun
from tests.support.gangs import RANKBRIDGE, RunningGang, up
from tests.support.strangers import needs_another_user, stranger
from tests.support.waiting import until

import rankbridge
from rankbridge import Gang
from rankbridge.errors import DeadlineExceededError, GangError, NotAllowedError, RankBridgeError
from rankbridge.v1 import rank_service_pb2, rank_service_pb2_grpc

SIZE = 2


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("observed") / "folder"


@pytest.fixture(scope="module")
def running(folder: Path) -> Iterator[RunningGang]:
    audit = str(folder.with_name("audit"))
    options = [*PATIENT, "--observe", str(folder), "--max-pending", "1", "--audit", audit]
    with up(folder.parent, SIZE, "gloo", options) as it:
        yield it


@pytest.fixture
def observer(running: RunningGang, folder: Path) -> Iterator[Gang]:
    with rankbridge.connect(folder / "gang.json", session=False) as it:
        yield it


def is_refusal(error: RankBridgeError) -> bool:
    """Whether an error says that the caller may not do this, on every rank that it names."""
    errors = [it.error for it in error.outcomes] if isinstance(error, GangError) else [error]
    return all(isinstance(it, NotAllowedError) and "the caller may observe" in str(it) for it in errors)


def is_healthy(gang: Gang) -> bool:
    """A verdict waits 2 s for a rank; on a busy machine one may be later, or all."""
    try:
        return gang.diagnose().is_healthy
    except DeadlineExceededError:
        return False


def test_an_observer_sees_all(running: RunningGang, observer: Gang) -> None:
    with rankbridge.connect(running.endpoints_file) as owner:
        owner.barrier()
    assert [it.pid for it in observer.status()] == running.pids
    assert [it[-1].operation for it in observer.record()] == ["barrier"] * SIZE
    until(lambda: is_healthy(observer))


def test_an_observer_changes_nothing(running: RunningGang, observer: Gang) -> None:
    before = [(it.generation, it.groups, it.sessions) for it in observer.status()]
    changes: list[Callable[[], object]] = [
        observer.barrier,
        lambda: observer.put([np.zeros(1, np.float32)] * SIZE),
        lambda: observer.new_group("other", [0, 1]),
        lambda: observer.hold("kind=barrier"),
        observer.form,
    ]
    for change in changes:
        with pytest.raises(RankBridgeError) as raised:
            change()
        assert is_refusal(raised.value), raised.value
    assert [(it.generation, it.groups, it.sessions) for it in observer.status()] == before


def test_the_audit_names_observers(observer: Gang, folder: Path) -> None:
    observer.status()
    lines = [json.loads(it) for it in folder.with_name("audit").read_text().splitlines()]
    assert "observe" in {it.get("role") for it in lines}


def test_the_folder_is_the_users_and_the_file_has_no_tokens(running: RunningGang, folder: Path) -> None:
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    # The witness gives the ranks' own sockets other names.
    until(lambda: (folder / ".r0").exists() and (folder / ".r1").exists())
    assert {it.name: stat.S_IMODE(it.stat().st_mode) for it in folder.iterdir() if it.name[:2] != ".w"} == {
        ".r0": 0o660,
        ".r1": 0o660,
        "gang.json": 0o640,
        "rank-0": 0o660,
        "rank-1": 0o660,
        "rank-0.record": 0o640,
        "rank-1.record": 0o640,
    }
    assert running.token not in (folder / "gang.json").read_text()


CONNECT = """
for path in sys.argv[1:]:
    with socket.socket(socket.AF_UNIX) as sock:
        try:
            sock.connect(path)
            print("connected")
        except PermissionError:
            print("refused")
"""


@needs_another_user
@pytest.mark.usefixtures("running")
def test_another_user_who_may_enter_the_folder_needs_its_group(folder: Path) -> None:
    closed = {it: it.stat().st_mode for it in (*folder.parents, folder) if it.stat().st_uid == 0}
    path = folder / "rank-0"
    assert stranger("socket, sys", CONNECT, str(path)) == ["refused"]
    try:
        for it in closed:
            it.chmod(stat.S_IMODE(closed[it]) | 0o055)
        assert stranger("socket, sys", CONNECT, str(path)) == ["refused"]
        path.chmod(0o666)
        assert stranger("socket, sys", CONNECT, str(path)) == ["connected"]
    finally:
        path.chmod(0o660)
        for it, mode in closed.items():
            it.chmod(stat.S_IMODE(mode))


def test_the_commands_take_the_folders_file(running: RunningGang, folder: Path) -> None:
    for command, said in {
        "doctor": "HEALTHY|UNKNOWN",
        "status": "formed",
        "record": "operation|recorded",
    }.items():
        arguments = [RANKBRIDGE, command, "--endpoints", str(folder / "gang.json")]
        found = subprocess.run(arguments, capture_output=True, text=True, timeout=60, check=False)
        # A verdict waits 2 s for a rank, and does not know what one does that has other work beside it.
        expected = 3 if "UNKNOWN" in found.stdout else 0
        assert (found.returncode, found.stderr) == (expected, ""), (command, found.stdout)
        assert re.search(said, found.stdout), (command, found.stdout)


def answers(rank: rank_service_pb2_grpc.RankServiceStub) -> bool:
    try:
        rank.DescribeRank(rank_service_pb2.DescribeRankRequest(), timeout=1.0)
    except grpc.RpcError:
        return False
    return True


def test_it_answers_while_all_other_threads_of_a_rank_are_taken(running: RunningGang, observer: Gang) -> None:
    may_end = threading.Event()

    def nothing() -> Iterator[reflection_pb2.ServerReflectionRequest]:
        may_end.wait()
        yield from ()

    with grpc.insecure_channel(running.targets[0]) as channel:
        reflection: Any = reflection_pb2_grpc.ServerReflectionStub(channel)
        rank = rank_service_pb2_grpc.RankServiceStub(channel)
        try:
            calls: list[object] = []
            # On a busy machine an answer may be late.
            while any(answers(rank) for _ in range(3)) and len(calls) < 5_000:
                calls += [reflection.ServerReflectionInfo(nothing()) for _ in range(50)]
            assert not answers(rank)
            assert [it.rank for it in observer.status()] == [0, 1]
            until(lambda: is_healthy(observer))
        finally:
            may_end.set()


def test_the_records_are_left_when_the_gang_has_ended(tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    records = {"rank-0.record", "rank-1.record"}
    with up(tmp_path, SIZE, "fake", ["--observe", str(folder)]):
        shown = {it.name for it in folder.iterdir() if not it.name.startswith(".")}
        assert shown == {"gang.json", "rank-0", "rank-1", *records}
    until(lambda: {it.name for it in folder.iterdir()} == records)


def test_a_folder_that_cannot_be_made_is_an_error(tmp_path: Path) -> None:
    arguments = [RANKBRIDGE, "up", "--backend", "fake", "--observe", str(tmp_path / "a" / "b")]
    found = subprocess.run(arguments, capture_output=True, text=True, timeout=60, check=False)
    assert found.returncode == 1
    assert str(tmp_path / "a" / "b") in found.stderr


@pytest.mark.sampled
def test_a_job_with_a_sidecar_can_be_observed(tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    *launcher, script = torchrun(SIZE)
    command = [*launcher, "-m", "rankbridge_server.attach", "--observe", str(folder), script]
    with job(tmp_path, command, ["--pause", "0.01"]) as it:
        it.attached()
        with rankbridge.connect(folder / "gang.json", session=False) as gang:
            assert len(gang.status()) == SIZE
            until(lambda: is_healthy(gang))
            with pytest.raises(RankBridgeError) as raised:
                gang.barrier()
            assert is_refusal(raised.value)
