"""A directory for a gang's sockets and its endpoints file, short enough for their paths, gone when the gang is."""

from __future__ import annotations

import fcntl
import grp
import os
import pwd
import shutil
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_PREFIX = "rankbridge-"
_LOCK = "lock"
GANG = "gang.json"
"""Name of the endpoints file there."""


class UntrustedDirectory(Exception):
    """Another user can rename what is in a directory."""


@contextmanager
def runtime_dir() -> Iterator[Path]:
    """A directory of this process. Those that killed processes left behind are removed first.

    Raises UntrustedDirectory where another user could put another directory in its place.
    """
    _check(Path(tempfile.gettempdir()))
    _sweep()
    path, lock = _locked()
    try:
        yield path
    finally:
        shutil.rmtree(path, ignore_errors=True)
        os.close(lock)


def _check(path: Path) -> None:
    """Checks that nobody but this user and root can rename what is in a directory, or its parents."""
    path = path.resolve()
    for each in (path, *path.parents):
        if not _is_trusted(each.stat()):
            raise UntrustedDirectory(
                f"{each} can be changed by other users, who could take the place of the gang's sockets in {path}: "
                "let TMPDIR be a directory of yours, or one that is sticky"
            )


def _is_trusted(found: os.stat_result) -> bool:
    if found.st_uid not in (0, os.getuid(), _root_outside()):
        return False
    if found.st_mode & stat.S_ISVTX:
        return True
    others = found.st_mode & stat.S_IWOTH
    return not others and not (found.st_mode & stat.S_IWGRP and not _is_private(found.st_gid))


def _is_private(gid: int) -> bool:
    """Whether a group is that of this user alone: it has the user's name, as is the custom."""
    try:
        return gid == 0 or grp.getgrgid(gid).gr_name == pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        return False


def _root_outside() -> int:
    """The owner of "/". Within a user namespace, where the root outside has no number of its own, it is not 0."""
    return Path("/").stat().st_uid


def _locked() -> tuple[Path, int]:
    while True:
        path = Path(tempfile.mkdtemp(prefix=_PREFIX))
        lock = os.open(path / _LOCK, os.O_CREAT | os.O_RDWR, 0o600)
        fcntl.flock(lock, fcntl.LOCK_EX)
        if path.exists():
            return path, lock
        # Another process that began at the same time has locked it first, and taken it for one left behind.
        os.close(lock)


def running_gangs() -> list[Path]:
    """Endpoints files of this user's gangs that run on this host; of those that have the same TMPDIR."""
    return sorted(
        path / GANG for path, held in _of_this_user(fcntl.LOCK_SH) if held and (path / GANG).exists()
    )


def _sweep() -> None:
    for path, held in _of_this_user(fcntl.LOCK_EX):
        if not held:
            shutil.rmtree(path, ignore_errors=True)


def _of_this_user(kind: int) -> Iterator[tuple[Path, bool]]:
    """This user's directories, and whether a process holds each. `kind`: of lock on one that nobody does, meanwhile."""
    for path in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*"):
        try:
            if path.stat().st_uid != os.getuid():
                continue
            lock = os.open(path / _LOCK, os.O_RDWR)
        except OSError:
            # Not ours, gone meanwhile, or not locked yet by the process that makes it.
            continue
        try:
            fcntl.flock(lock, kind | fcntl.LOCK_NB)
            held = False
        except OSError:
            held = True
        try:
            yield path, held
        finally:
            os.close(lock)
