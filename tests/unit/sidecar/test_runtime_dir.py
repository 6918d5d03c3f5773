"""The directory of a gang's sockets."""

from __future__ import annotations

import fcntl
import os
import tempfile
from pathlib import Path

import pytest
from tests.support.strangers import needs_another_user

from rankbridge_server.sidecar import runtime_dir as module
from rankbridge_server.sidecar.runtime_dir import UntrustedDirectory, runtime_dir


@pytest.fixture(autouse=True)
def _in_a_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))


def test_a_directory_lasts_as_long_as_its_gang(tmp_path: Path) -> None:
    with runtime_dir() as one:
        (one / "rank-0").touch()
        with runtime_dir() as other:
            assert one.exists()
            assert other.exists()
    assert list(tmp_path.iterdir()) == []


def test_what_a_killed_process_left_is_removed(tmp_path: Path) -> None:
    left = tmp_path / "rankbridge-left"
    left.mkdir()
    (left / "lock").touch()
    with runtime_dir() as path:
        assert list(tmp_path.iterdir()) == [path]


def test_a_process_that_begins_at_the_same_time_removes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """It looks for what is left behind when the new directory has a lock that is not held yet."""
    began = 0
    lock = fcntl.flock

    def flock(fd: int, operation: int) -> None:
        nonlocal began
        if operation == fcntl.LOCK_EX and not began:
            began += 1
            module._sweep()
        lock(fd, operation)

    monkeypatch.setattr(fcntl, "flock", flock)
    with runtime_dir() as path:
        assert (path / "lock").exists()
    assert began == 1


def test_a_directory_where_others_can_rename_is_refused(tmp_path: Path) -> None:
    inner = tmp_path / "inner"
    inner.mkdir()
    tempfile.tempdir = str(inner)
    for shared in (inner, tmp_path):
        mode = shared.stat().st_mode
        shared.chmod(0o777)
        with pytest.raises(UntrustedDirectory, match=f"^{shared} can be changed"), runtime_dir():
            pass
        shared.chmod(0o1777)
        with runtime_dir() as path:
            assert path.parent == inner
            assert path.stat().st_mode & 0o777 == 0o700
        shared.chmod(mode)


@needs_another_user
def test_a_directory_of_a_group_is_refused_unless_the_group_is_the_users_own(tmp_path: Path) -> None:
    tmp_path.chmod(0o770)
    with runtime_dir():
        pass
    os.chown(tmp_path, -1, 12345)
    with pytest.raises(UntrustedDirectory), runtime_dir():
        pass


@needs_another_user
def test_a_directory_of_another_user_is_refused(tmp_path: Path) -> None:
    os.chown(tmp_path, 12345, 12345)
    with pytest.raises(UntrustedDirectory), runtime_dir():
        pass
