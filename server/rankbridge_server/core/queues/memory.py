"""Memory that processes of one host share, without a name: the kernel frees it when the last process closes it."""

from __future__ import annotations

import fcntl
import mmap
import os
import zlib
from collections.abc import Sequence

_SIZE_SEALS = fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SEAL


class Ring:
    """A ring of `chunks` values of at most `chunk_bytes` bytes each. Value n overwrites value n - chunks.

    The messages on the connections say which values may be written and read; the ring only has the values.
    """

    def __init__(self, fd: int, chunk_bytes: int, chunks: int, *, writable: bool) -> None:
        """Maps a ring of `make_ring`. Raises OSError or ValueError."""
        self._chunk_bytes = chunk_bytes
        self._chunks = chunks
        protection = mmap.PROT_READ | (mmap.PROT_WRITE if writable else 0)
        self._map = mmap.mmap(fd, chunk_bytes * chunks, mmap.MAP_SHARED, protection)

    def write(self, number: int, data: bytes) -> int:
        """Writes a value; returns its checksum."""
        start = self._start(number)
        self._map[start : start + len(data)] = data
        return zlib.crc32(data)

    def read(self, number: int, length: int, checksum: int) -> bytes:
        """Reads a copy of a value. Raises ValueError when the checksum differs."""
        start = self._start(number)
        data = self._map[start : start + length]
        if zlib.crc32(data) != checksum:
            raise ValueError(f"value {number} in shared memory is not what was written")
        return data

    def close(self) -> None:
        """Unmaps the ring."""
        self._map.close()

    def _start(self, number: int) -> int:
        return number % self._chunks * self._chunk_bytes


def make_ring(chunk_bytes: int, chunks: int) -> int:
    """Makes memory for a ring; returns its file descriptor. Pages are allocated when written. Raises OSError."""
    fd = os.memfd_create("rankbridge-queue", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    try:
        os.ftruncate(fd, chunk_bytes * chunks)
        # No process can shrink the memory under a reader.
        fcntl.fcntl(fd, fcntl.F_ADD_SEALS, _SIZE_SEALS)
    except OSError:
        os.close(fd)
        raise
    return fd


class ValueFile:
    """A value in a sealed memory file of its own. Each of its `holders` releases it once."""

    def __init__(self, data: bytes, holders: int) -> None:
        """Raises OSError when there is no memory or no file descriptor."""
        self._holders = holders
        self.fd = os.memfd_create("rankbridge-value", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
        try:
            _write(self.fd, data)
            fcntl.fcntl(self.fd, fcntl.F_ADD_SEALS, _SIZE_SEALS | fcntl.F_SEAL_WRITE)
        except OSError:
            os.close(self.fd)
            raise

    def release(self) -> None:
        """Releases the file for one holder; the last one closes it."""
        self._holders -= 1
        if not self._holders:
            os.close(self.fd)


def read_value_file(fd: int, length: int) -> bytes:
    """Reads a value from its file. Raises OSError or ValueError."""
    pieces: list[bytes] = []
    got = 0
    while got < length:
        # All holders of the file share its position, so it is not used.
        piece = os.pread(fd, length - got, got)
        if not piece:
            raise ValueError(f"a value's file has {got} bytes instead of {length}")
        pieces.append(piece)
        got += len(piece)
    return pieces[0] if len(pieces) == 1 else b"".join(pieces)


def close_all(fds: Sequence[int]) -> None:
    """Closes file descriptors that are not used."""
    for fd in fds:
        os.close(fd)


def _write(fd: int, data: bytes) -> None:
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(fd, rest) :]
