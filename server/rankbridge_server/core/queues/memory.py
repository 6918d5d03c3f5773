"""Memory that processes of one host share. It has no name: the kernel frees it when the last of them closes it."""

from __future__ import annotations

import fcntl
import mmap
import os
import zlib
from collections.abc import Sequence

_SIZE_SEALS = fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SEAL


class Ring:
    """Room for `chunks` values of at most `chunk_bytes` bytes each; value number n lies where n - chunks was.

    The notes on the lines say who may write and read which number; the memory holds only values.
    """

    def __init__(self, fd: int, chunk_bytes: int, chunks: int, *, writable: bool) -> None:
        """Map what `make_ring` made. Raises OSError or ValueError."""
        self._chunk_bytes = chunk_bytes
        self._chunks = chunks
        protection = mmap.PROT_READ | (mmap.PROT_WRITE if writable else 0)
        self._map = mmap.mmap(fd, chunk_bytes * chunks, mmap.MAP_SHARED, protection)

    def write(self, number: int, data: bytes) -> int:
        """Put a value in its place; returns its checksum."""
        start = self._start(number)
        self._map[start : start + len(data)] = data
        return zlib.crc32(data)

    def read(self, number: int, length: int, checksum: int) -> bytes:
        """A copy of a value. Raises ValueError when it is not what was written."""
        start = self._start(number)
        data = self._map[start : start + length]
        if zlib.crc32(data) != checksum:
            raise ValueError(f"value {number} in shared memory is not what was written")
        return data

    def close(self) -> None:
        """Let go of it."""
        self._map.close()

    def _start(self, number: int) -> int:
        return number % self._chunks * self._chunk_bytes


def make_ring(chunk_bytes: int, chunks: int) -> int:
    """Memory for a ring, as a file descriptor. It takes up room as it is written to. Raises OSError."""
    fd = os.memfd_create("rankbridge-queue", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    try:
        os.ftruncate(fd, chunk_bytes * chunks)
        # Nobody can take memory away from under a reader.
        fcntl.fcntl(fd, fcntl.F_ADD_SEALS, _SIZE_SEALS)
    except OSError:
        os.close(fd)
        raise
    return fd


class ValueFile:
    """A value in memory of its own, which nobody can change any more. Each of `holders` lets go of it once."""

    def __init__(self, data: bytes, holders: int) -> None:
        """Raises OSError when there is no memory or no file descriptor for it."""
        self._holders = holders
        self.fd = os.memfd_create("rankbridge-value", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
        try:
            _write(self.fd, data)
            fcntl.fcntl(self.fd, fcntl.F_ADD_SEALS, _SIZE_SEALS | fcntl.F_SEAL_WRITE)
        except OSError:
            os.close(self.fd)
            raise

    def release(self) -> None:
        """One of the holders needs it no more."""
        self._holders -= 1
        if not self._holders:
            os.close(self.fd)


def read_value_file(fd: int, length: int) -> bytes:
    """The value in a parcel. Raises OSError or ValueError."""
    pieces: list[bytes] = []
    got = 0
    while got < length:
        # The position of a parcel that went to several is shared by all of them.
        piece = os.pread(fd, length - got, got)
        if not piece:
            raise ValueError(f"a parcel has {got} bytes instead of {length}")
        pieces.append(piece)
        got += len(piece)
    return pieces[0] if len(pieces) == 1 else b"".join(pieces)


def close_all(fds: Sequence[int]) -> None:
    """Close file descriptors that came and are not used."""
    for fd in fds:
        os.close(fd)


def _write(fd: int, data: bytes) -> None:
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(fd, rest) :]
