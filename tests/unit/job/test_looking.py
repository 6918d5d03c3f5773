"""What is said where a process cannot be looked into, and which process of a rank is the rank."""

import os
import platform
import stat
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.support.processes import stop

from rankbridge_server.core.processes import GONE, look
from rankbridge_server.doctor.evidence import Thread
from rankbridge_server.job.outside import injection, processes, stacks


def program(folder: Path, name: str, says: str, status: int) -> str:
    path = folder / name
    path.write_text(f"#!/bin/sh\necho '{says}' >&2\nexit {status}\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return str(path)


@contextmanager
def process(code: str, **environment: str) -> Iterator["subprocess.Popen[bytes]"]:
    with subprocess.Popen(
        [sys.executable, "-c", code], env={**os.environ, **environment}, stdout=subprocess.PIPE
    ) as it:
        try:
            yield it
        finally:
            it.kill()


def test_without_py_spy_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stacks, "program", lambda: None)
    assert "pip install 'rankbridge[doctor]'" in stacks.read(os.getpid(), {}).trouble


def test_without_permission_it_says_what_to_grant(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    denied = program(tmp_path, "py-spy", "Permission Denied: Try running again with elevated permissions", 1)
    monkeypatch.setattr(stacks, "program", lambda: denied)
    seen = stacks.read(os.getpid(), {})
    assert seen.threads == ()
    assert "CAP_SYS_PTRACE" in seen.trouble


def test_another_failure_of_py_spy_is_passed_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    failing = program(tmp_path, "py-spy", "Error: no python found", 1)
    monkeypatch.setattr(stacks, "program", lambda: failing)
    assert "no python found" in stacks.read(os.getpid(), {}).trouble


def test_on_another_processor_nothing_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(platform, "machine", lambda: "riscv64")
    assert "are not read on riscv64" in injection.read(os.getpid(), [Thread(name="MainThread")]).trouble


def test_a_rank_whose_stacks_are_not_known_is_not_asked() -> None:
    assert "without its stacks" in injection.read(os.getpid(), []).trouble


def test_a_process_that_is_gone_is_gone() -> None:
    with process("pass") as it:
        it.wait()
    assert look(it.pid).state == GONE


def test_a_process_that_is_stopped_is_seen_and_not_woken() -> None:
    with process("import time; print(1, flush=True); time.sleep(100)") as it:
        assert it.stdout is not None
        it.stdout.readline()
        stop(it.pid)
        assert look(it.pid).state == "T"
        assert stacks.read(it.pid, {it.pid: "T"}).threads
        assert look(it.pid).state == "T"


LOADER = """
import subprocess, sys, time
child = subprocess.Popen([sys.executable, "-c", "import time; print(1, flush=True); time.sleep(100)"], stdout=-1)
child.stdout.readline()
print(child.pid, flush=True)
time.sleep(100)
"""


def test_children_that_inherit_the_rank_are_not_the_rank() -> None:
    rank = {"RANK": "3", "WORLD_SIZE": "4", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "1"}
    with process(LOADER, **rank) as it:
        assert it.stdout is not None
        child = int(it.stdout.readline())
        try:
            found = processes.find([child])
            assert [(at.pid, at.rank, at.world_size) for at in found] == [(it.pid, 3, 4)]
        finally:
            os.kill(child, 9)


def test_what_another_user_may_have_put_in_place_of_an_answer_keeps_nobody_waiting(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "link").symlink_to("/etc/hostname")
    with pytest.raises(ValueError, match="no file"):
        injection._content(tmp_path / "fifo")
    with pytest.raises(OSError, match="symbolic links"):
        injection._content(tmp_path / "link")
