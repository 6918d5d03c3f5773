"""Pieces of memory that a rank shares with this process: mapped, taken, and given back."""

from __future__ import annotations

import ctypes
import mmap
import os
import threading
from collections import deque
from dataclasses import dataclass

from rankbridge.v1 import ref_service_pb2 as ref_pb

MAX_VIEWS = 4
"""Segments of one rank that arrays of the caller's show at a time. More would be new ones each time, which takes longer
than copying out of one that has been used before."""

# All that arrays have shown, and one to copy out of.
_MAX_FREE = MAX_VIEWS + 1
_MAX_LENT = 4

# Grows with every fork: arrays that a child has as well must stay as they are when this process has forgotten them.
_forks = 0


def _forking() -> None:
    global _forks
    _forks += 1


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_forking)


class NotShared(Exception):
    """What a rank calls shared memory is none here; says why."""


@dataclass(frozen=True, slots=True, eq=False)
class Segment:
    """A segment, mapped. `room` in bytes."""

    id: str
    room: int
    map: mmap.mmap

    def memory(self, nbytes: int) -> memoryview:
        """Its first bytes."""
        return memoryview(self.map)[:nbytes]


class _Loan:
    """Ends when nothing shows the memory any more. That may be found out anywhere, so it is only noted."""

    def __init__(self, segment: Segment, epoch: int, pool: Pool) -> None:
        self.segment = segment
        self.epoch = epoch
        self.forks = _forks
        self._pool = pool

    def __del__(self) -> None:
        if self.epoch == self._pool.epoch:
            self._pool.returned.append(self)
        else:
            # Only the id: the memory itself is let go of now.
            self._pool.orphans.append(self.segment.id)


class Pool:
    """The segments that one rank has given to this process. Safe to use from any thread.

    Attributes:
        off: Why this rank shares no memory with this process; empty: it may.
        epoch: How often everything was forgotten.
        returned: Loans that have ended, to be looked at by whoever comes next.
        orphans: Ids of segments whose loans have ended after they were forgotten.
    """

    def __init__(self) -> None:
        """Has none yet."""
        self.off = ""
        self.epoch = 0
        self.returned: deque[_Loan] = deque()
        self.orphans: deque[str] = deque()
        self._lock = threading.Lock()
        self._free: list[Segment] = []
        self._unwanted: list[str] = []
        # What became memory of tensors on the rank may come again: to map memory takes longer than to copy it.
        self._lent: dict[str, Segment] = {}
        self._views = 0

    def take(self, nbytes: int) -> Segment | None:
        """The smallest free segment with that much room, if it is not far too large; the caller has it then."""
        with self._lock:
            self._take_back()
            fit = [it for it in self._free if nbytes <= it.room <= max(2 * nbytes, fitting(nbytes))]
            best = min(fit, key=lambda it: it.room, default=None)
            if best is not None:
                self._free.remove(best)
            return best

    def give_back(self, segment: Segment) -> None:
        """Nobody uses the segment."""
        with self._lock:
            self._free.append(segment)
            self._keep_few(_MAX_FREE)

    def give_up(self, segment: Segment) -> None:
        """The rank may use the segment at any time: it is not used again."""
        with self._lock:
            self._drop(segment)

    def forget(self) -> None:
        """No segment is used again: the rank knows none any more, or is to close those that it does know."""
        with self._lock:
            self.epoch += 1
            self._take_back()
            self._keep_few(0)
            self._lent.clear()

    def unwanted(self, *, all_free: bool = False) -> list[str]:
        """Takes the ids that the rank has to close. `all_free`: with those of all that nobody uses."""
        with self._lock:
            self._take_back()
            if all_free:
                self._keep_few(0)
            ids, self._unwanted = self._unwanted, []
            return ids

    def still_unwanted(self, ids: list[str]) -> None:
        """The rank may not have heard that it is to close these."""
        with self._lock:
            self._unwanted.extend(ids)

    def map(self, memory: ref_pb.SharedMemory) -> Segment:
        """The segment that a rank tells of.

        Raises:
            NotShared: There is no such file here, or it is another.
        """
        with self._lock:
            lent = self._lent.pop(memory.id, None)
        if lent is not None:
            return lent
        try:
            fd = os.open(memory.path, os.O_RDWR | os.O_CLOEXEC)
            try:
                if not memory.nonce or os.pread(fd, len(memory.nonce) + 1, memory.bytes) != memory.nonce:
                    raise NotShared(f"{memory.path} is another file here")
                return Segment(memory.id, memory.bytes, mmap.mmap(fd, memory.bytes, mmap.MAP_SHARED))
            finally:
                os.close(fd)
        except (OSError, ValueError, OverflowError) as error:
            raise NotShared(f"{memory.path}: {error}") from error

    def lend(self, segment: Segment) -> None:
        """The segment has become memory of a tensor on the rank, which may give it to this process again later."""
        with self._lock:
            self._lent[segment.id] = segment
            for oldest in list(self._lent)[:-_MAX_LENT]:
                del self._lent[oldest]

    def view(self, segment: Segment, nbytes: int) -> memoryview | None:
        """The segment's first bytes, for an array: free again when nothing shows them any more.

        None: there are enough such arrays; the segment stays with the caller.
        """
        with self._lock:
            self._take_back()
            if self._views >= MAX_VIEWS:
                return None
            self._views += 1
            epoch = self.epoch
        memory = (ctypes.c_uint8 * nbytes).from_buffer(segment.map)
        memory._rankbridge_loan = _Loan(segment, epoch, self)  # type: ignore[attr-defined]
        return memoryview(memory).cast("B")

    def _keep_few(self, most: int) -> None:
        for _ in range(len(self._free) - most):
            self._drop(self._free.pop(0))

    def _drop(self, segment: Segment) -> None:
        self._unwanted.append(segment.id)

    def _take_back(self) -> None:
        while self.returned:
            loan = self.returned.popleft()
            self._views -= 1
            if loan.epoch == self.epoch and loan.forks == _forks:
                self._free.append(loan.segment)
            else:
                self._drop(loan.segment)
        while self.orphans:
            self._views -= 1
            self._unwanted.append(self.orphans.popleft())
        self._keep_few(_MAX_FREE)


def fitting(nbytes: int) -> int:
    """Room to ask for, so that tensors of nearly the same size use the same segments: up to an eighth more."""
    step = max(1 << 20, 1 << max(0, nbytes.bit_length() - 4))
    return -(-nbytes // step) * step
