"""Files in memory, in a directory that goes with its process."""

from __future__ import annotations

import fcntl
import mmap
import os
import secrets
import shutil
import threading
import time
from dataclasses import dataclass
from pathlib import Path

ROOT = Path("/dev/shm")
NONCE_BYTES = 16
_PREFIX = "rankbridge-tensors-"
_LOCK = "lock"
# The process of a directory without a lock has just made it, or has died before it could lock it.
_FRESH_S = 60.0


@dataclass(frozen=True, slots=True)
class SharedFile:
    """A mapped file. `nbytes`: size of `map`, in whole pages; the nonce lies behind them."""

    path: Path
    nbytes: int
    nonce: bytes
    map: mmap.mmap

    def remove(self) -> None:
        """Removes the file's name. The memory is freed when no process has it mapped or open."""
        self.path.unlink(missing_ok=True)


class SharedDirectory:
    """The files of one rank, in a directory under `root` that is made with the first. Safe to call from any thread."""

    def __init__(self, root: Path = ROOT) -> None:
        self.root = root
        self._making = threading.Lock()
        self._path: Path | None = None
        self._lock: int | None = None
        self._closed = False

    def make(self, nbytes: int) -> SharedFile:
        """Makes a file of `nbytes` bytes or more, with allocated memory. Raises OSError."""
        size = -(-nbytes // mmap.PAGESIZE) * mmap.PAGESIZE
        nonce = secrets.token_bytes(NONCE_BYTES)
        path = self._directory() / secrets.token_hex(16)
        fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
        try:
            # Allocates the memory: a write to mapped memory that cannot be allocated kills the process.
            os.posix_fallocate(fd, 0, size + NONCE_BYTES)
            os.pwrite(fd, nonce, size)
            return SharedFile(path, size, nonce, mmap.mmap(fd, size, mmap.MAP_SHARED))
        except (OSError, ValueError):
            path.unlink(missing_ok=True)
            raise
        finally:
            os.close(fd)

    def close(self) -> None:
        """Removes the directory and its files. No more files are made."""
        with self._making:
            self._closed = True
            if self._path is not None:
                shutil.rmtree(self._path, ignore_errors=True)
                self._path = None
            if self._lock is not None:
                os.close(self._lock)
                self._lock = None

    def _directory(self) -> Path:
        with self._making:
            if self._closed:
                raise OSError("the rank stops")
            while self._path is None:
                path = self.root / f"{_PREFIX}{secrets.token_hex(16)}"
                path.mkdir(mode=0o700)
                self._lock = _locked(path)
                if self._lock is not None:
                    self._path = path
            return self._path


def sweep(root: Path = ROOT) -> None:
    """Removes the directories of killed processes of this user."""
    for path in root.glob(f"{_PREFIX}*"):
        try:
            if path.lstat().st_uid != os.geteuid():
                continue
            _sweep(path)
        except OSError:
            # It is gone meanwhile, or its process lives and holds the lock.
            continue


def _sweep(path: Path) -> None:
    try:
        lock = os.open(path / _LOCK, os.O_RDWR | os.O_NOFOLLOW)
    except FileNotFoundError:
        if time.time() - path.lstat().st_mtime > _FRESH_S:
            path.rmdir()
        return
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        shutil.rmtree(path, ignore_errors=True)
    finally:
        os.close(lock)


def _locked(path: Path) -> int | None:
    """Locks a new directory. Returns None if a sweep took it for that of a killed process."""
    try:
        lock = os.open(path / _LOCK, os.O_CREAT | os.O_RDWR, 0o600)
    except FileNotFoundError:
        return None
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if os.path.samestat(os.fstat(lock), os.stat(path / _LOCK)):
            return lock
    except OSError:
        pass
    os.close(lock)
    shutil.rmtree(path, ignore_errors=True)
    return None
