"""The memory of a record: slots of one size in a mapped file, which outlives the rank, or in memory of its process.

    header      4,096 bytes: what the file is, whose it is, and how far its writer has come
    states      twice STATE_BYTES: what the rank is, as its writer has packed it; the newer of both counts
    order       8 bytes for each operation that is kept: where the slot is of the one that ended so and so many-th
    slots       as many as operations are kept, and SPARE for those that have not ended

One process writes; any reads, also after the writer's death. What is written last makes valid what was written before.
"""

from __future__ import annotations

import mmap
import os
import struct
from contextlib import suppress
from pathlib import Path

from .recorded import Recorded
from .slots import SLOT_BYTES, is_pending, unpack

MAGIC = b"RBRECRD2"
HEADER_BYTES = 4096
STATE_BYTES = 128 * 1024
SPARE = 1024
HEADER = struct.Struct("<8sIIIIQQd")
"""Magic, bytes of a slot, operations that are kept, spare slots, bytes of a state, pid, when the process began by the
kernel's count, when the record began in seconds since 1970."""
ID_AT = HEADER.size
ENDED_AT = ID_AT + 8
ALIVE_AT = ENDED_AT + 8
EPOCH_AT = ALIVE_AT + 8
STATES_AT = EPOCH_AT + 8
ORDERLY_AT = STATES_AT + 8
NUMBER = struct.Struct("<Q")
SECONDS = struct.Struct("<d")


class BadRecord(ValueError):
    """What is wrong with a file that should be a record."""


class RecordMemory:
    """Reads the record of a process. Nothing here waits for its writer, who may go on, be stopped, or be dead.

    `kept`: operations that are kept, at most. `pid`, `began`: of the process that writes, and when the kernel started
    it: together they name it for certain. `since`: when the record began, in seconds since 1970.
    """

    def __init__(self, memory: mmap.mmap, where: str = "the record") -> None:
        """Raises BadRecord. `where`: for its text."""
        if len(memory) < HEADER_BYTES or memory[: len(MAGIC)] != MAGIC:
            raise BadRecord(f"{where} is no record of a rank, or of another version of rankbridge")
        fixed: tuple[bytes, int, int, int, int, int, int, float] = HEADER.unpack_from(memory)
        _, slot, self.kept, spare, state, self.pid, self.began, self.since = fixed
        if (slot, spare, state) != (SLOT_BYTES, SPARE, STATE_BYTES) or len(memory) != size_of(self.kept):
            raise BadRecord(f"{where} is cut off, or of another version of rankbridge")
        self.memory = memory

    @classmethod
    def open(cls, path: Path) -> RecordMemory:
        """The record in a file. Raises BadRecord, OSError."""
        with path.open("rb") as file:
            size = os.fstat(file.fileno()).st_size
            if size < HEADER_BYTES:
                raise BadRecord(f"{path} is no record of a rank")
            return RecordMemory(mmap.mmap(file.fileno(), size, access=mmap.ACCESS_READ), str(path))

    @property
    def id(self) -> int:
        """Unique among the records of all processes, and not 0."""
        return self._number(ID_AT)

    @property
    def ended(self) -> int:
        """How many operations have ended so far."""
        return self._number(ENDED_AT)

    @property
    def alive(self) -> float:
        """When the rank has last run Python, as far as it has written that: seconds since 1970."""
        return self._seconds(ALIVE_AT)

    @property
    def epoch(self) -> float:
        """When the writer's monotonic clock was 0, as of `alive`: seconds since 1970."""
        return self._seconds(EPOCH_AT)

    @property
    def is_orderly(self) -> bool:
        """Whether somebody stopped the rank in order, and it has ended."""
        return self._number(ORDERLY_AT) != 0

    @property
    def state(self) -> bytes:
        """What the rank is, as its writer has packed it. Empty: it has not."""
        while True:
            number = self._number(STATES_AT)
            if not number:
                return b""
            at = state_at(number)
            state = self.memory[at + 8 : at + 8 + min(self._number(at), STATE_BYTES - 8)]
            # A writer that goes on writes the other of both first.
            if self._number(STATES_AT) == number:
                return state

    def after(self, number: int, most: int) -> tuple[list[Recorded], int]:
        """The first `most` operations that have ended after the first `number`, and the number of the last."""
        ended = self.ended
        first = max(number, ended - self.kept)
        last = min(ended, first + most)
        found = [self._slot(self._number(order_at(it % self.kept))) for it in range(first + 1, last + 1)]
        # What the writer has written over meanwhile.
        overtaken = max(0, self.ended - self.kept - first)
        return [unpack(it) for it in found[overtaken:] if it], last

    def entries(self, limit: int = 0) -> list[Recorded]:
        """The last operations that have ended, in that order. `limit`: at most so many; 0: all that are kept."""
        most = min(limit or self.kept, self.kept, ended := self.ended)
        return self.after(ended - most, most)[0]

    def unended(self) -> list[Recorded]:
        """The operations that have entered a phase and not ended, the oldest first."""
        found = []
        for at in range(slot_at(self.kept, 0), len(self.memory), SLOT_BYTES):
            if is_pending(self.memory, at):
                slot = self._slot(at)
                # What the writer changes meanwhile is not whole, and what a dead one was writing never will be.
                if is_pending(slot, 0) and is_pending(self.memory, at):
                    with suppress(ValueError):
                        found.append(unpack(slot))
        return sorted(found, key=lambda it: it.called)

    def _slot(self, at: int) -> bytes:
        return self.memory[at : at + SLOT_BYTES] if at else b""

    def _number(self, at: int) -> int:
        number: int = NUMBER.unpack_from(self.memory, at)[0]
        return number

    def _seconds(self, at: int) -> float:
        seconds: float = SECONDS.unpack_from(self.memory, at)[0]
        return seconds


def size_of(kept: int) -> int:
    """Bytes of a record that keeps so many operations."""
    return slot_at(kept, kept + SPARE)


def state_at(number: int) -> int:
    """Where a state is, by its number."""
    return HEADER_BYTES + number % 2 * STATE_BYTES


def order_at(place: int) -> int:
    """Where it is written which slot is at a place among those that have ended."""
    return HEADER_BYTES + 2 * STATE_BYTES + place * NUMBER.size


def slot_at(kept: int, slot: int) -> int:
    """Where a slot is, counted from 0."""
    return order_at(kept) + slot * SLOT_BYTES


def in_file(path: Path, size: int, mode: int) -> mmap.mmap:
    """Memory in a file beside `path`, which `publish` puts there. Raises OSError."""
    new = _new(path)
    new.unlink(missing_ok=True)
    file = os.open(new, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        # Where the disk is full this fails, and not the first write into the mapping, which would end the process.
        os.posix_fallocate(file, 0, size)
        os.fchmod(file, mode)
        return mmap.mmap(file, size)
    except OSError:
        new.unlink(missing_ok=True)
        raise
    finally:
        os.close(file)


def publish(path: Path) -> None:
    """Puts the file of `in_file` into its place: whoever opens it sees a whole header."""
    os.replace(_new(path), path)


def _new(path: Path) -> Path:
    return path.with_name(f".{path.name}.{os.getpid()}")
