"""Memory that processes of this host can share: it has no name in any directory, and goes with its last user."""

from __future__ import annotations

import fcntl
import mmap
import os
import secrets
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

NONCE_BYTES = 16
# Nobody who opens it can make it smaller: who reads where nothing is any more is killed by the kernel.
_SEALS = fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SEAL


@dataclass(frozen=True, slots=True)
class SharedMemory:
    """Mapped memory. `nbytes`: size of `map`, in whole pages; the nonce lies behind them.

    `path`: where processes of this user open it, until `close`.
    """

    path: Path
    nbytes: int
    nonce: bytes
    map: mmap.mmap
    close: Callable[[], None]
    """Takes the path away. The memory is freed when no process has it mapped or open."""


def make_shared_memory(nbytes: int) -> SharedMemory:
    """Makes memory of `nbytes` bytes or more, which is allocated. Raises OSError."""
    size = -(-nbytes // mmap.PAGESIZE) * mmap.PAGESIZE
    nonce = secrets.token_bytes(NONCE_BYTES)
    fd = os.memfd_create("rankbridge-tensor", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    try:
        # Allocates the memory: a write to mapped memory that cannot be allocated kills the process.
        os.posix_fallocate(fd, 0, size + NONCE_BYTES)
        os.pwrite(fd, nonce, size)
        fcntl.fcntl(fd, fcntl.F_ADD_SEALS, _SEALS)
        mapped = mmap.mmap(fd, size, mmap.MAP_SHARED)
    except (OSError, ValueError):
        os.close(fd)
        raise
    return SharedMemory(Path(f"/proc/{os.getpid()}/fd/{fd}"), size, nonce, mapped, lambda: os.close(fd))
