"""The record of a rank: its last operations, as they went."""

from __future__ import annotations

import mmap
import os
import secrets
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from ..errors import Phase, exhausted
from ..processes import started
from .memory import (
    ALIVE_AT,
    ENDED_AT,
    EPOCH_AT,
    HEADER,
    ID_AT,
    MAGIC,
    NUMBER,
    ORDERLY_AT,
    SECONDS,
    SPARE,
    STATE_BYTES,
    STATES_AT,
    RecordMemory,
    in_file,
    order_at,
    publish,
    size_of,
    slot_at,
    state_at,
)
from .recorded import Entry, Recorded
from .slots import DONE, SLOT_BYTES, STEP, STEP_AT, write

MAX_WATCHES = 64
_DATA = Phase.DATA.value
# Each operation passes them.
_write_step, _write_done, _write_number = STEP.pack_into, DONE.pack_into, NUMBER.pack_into


class Growth(NamedTuple):
    """Operations that have ended after a number. `ended`: the number of the last; `lost`: those between not kept."""

    operations: Sequence[Recorded]
    ended: int
    lost: int


class Record(RecordMemory):
    """Keeps the last `size` operations that have ended, and those that have entered a phase and not ended. Thread-safe.

    `path`: of the file that it is kept in, with `mode`, in the place of one that is there; None: it is kept in the
    process's memory. Raises OSError.
    """

    def __init__(self, size: int, path: Path | None = None, mode: int = 0o600) -> None:
        length = size_of(size)
        if path is None:
            memory = mmap.mmap(-1, length, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        else:
            memory = in_file(path, length, mode)
        pid = os.getpid()
        HEADER.pack_into(
            memory, 0, MAGIC, SLOT_BYTES, size, SPARE, STATE_BYTES, pid, started(pid), time.time()
        )
        NUMBER.pack_into(memory, ID_AT, 1 + secrets.randbelow(2**63 - 1))
        super().__init__(memory)
        self._count = 0
        self._states = 0
        self._free = [slot_at(size, it) for it in reversed(range(size + SPARE))]
        # Where the slots are of those that have ended, as in the memory: the oldest is written over.
        self._order = [0] * size
        self._first = order_at(0)
        self._lock = threading.Lock()
        self._watches: set[RecordWatch] = set()
        self._closed = False
        self.live()
        if path is not None:
            publish(path)

    def note(self, entry: Entry) -> None:
        """Notes how far an entry has come. The caller holds the lock of a task."""
        at = entry.slot
        if at and entry.entered:
            _write_step(self.memory, at + STEP_AT, _DATA, entry.entered)
            return
        if not at:
            try:
                at = entry.slot = self._free.pop()
            except IndexError:
                return
        write(self.memory, at, entry, 0.0)

    def add(self, entry: Entry) -> None:
        """Keeps an entry that is done."""
        memory, at, now = self.memory, entry.slot, time.monotonic()
        with self._lock:
            self._count = count = self._count + 1
            if not self.kept:
                if at:
                    _write_done(memory, at, now)
                    self._free.append(at)
                NUMBER.pack_into(memory, ENDED_AT, count)
                return
            place = count % self.kept
            oldest = self._order[place]
            if at and entry.error is None:
                _write_done(memory, at, now)
            else:
                if not at:
                    at, oldest = (self._free.pop(), oldest) if self._free else (oldest, 0)
                if at:
                    write(memory, at, entry, now)
            self._order[place] = at
            _write_number(memory, self._first + 8 * place, at)
            _write_number(memory, ENDED_AT, count)
            if oldest:
                self._free.append(oldest)

    def live(self) -> None:
        """Writes that the rank runs Python now."""
        now = time.time()
        SECONDS.pack_into(self.memory, EPOCH_AT, now - time.monotonic())
        SECONDS.pack_into(self.memory, ALIVE_AT, now)

    def describe(self, state: bytes) -> None:
        """Writes what the rank is. Raises ValueError if it is too long."""
        if len(state) > self.most_state:
            raise ValueError(f"the state of a rank has at most {self.most_state} bytes, not {len(state)}")
        with self._lock:
            self._states += 1
            at = state_at(self._states)
            NUMBER.pack_into(self.memory, at, len(state))
            self.memory[at + 8 : at + 8 + len(state)] = state
            NUMBER.pack_into(self.memory, STATES_AT, self._states)

    @property
    def most_state(self) -> int:
        """Bytes that `describe` takes."""
        return STATE_BYTES - 8

    def end(self) -> None:
        """Writes that the rank stops in order."""
        self.live()
        NUMBER.pack_into(self.memory, ORDERLY_AT, 1)

    def growth(self, number: int, most: int) -> Growth:
        """The first `most` operations that have ended after the first `number`, as far as they are kept."""
        operations, ended = self.after(number, most)
        return Growth(operations, ended, ended - number - len(operations))

    @contextmanager
    def watch(self, after: int | None, record: int, last: int = 0) -> Iterator[RecordWatch]:
        """A watch of what ends after the operation number `after`; None: from now on, and the `last` before.

        A number of another record, or of a future operation, counts as 0. Raises RESOURCE_EXHAUSTED.
        """
        with self._lock:
            if len(self._watches) >= MAX_WATCHES:
                got = str(len(self._watches) + 1)
                raise exhausted("too many watchers of this rank's record", most=str(MAX_WATCHES), got=got)
            if after is None:
                ended = self.ended
                after = ended - min(last, ended, self.kept)
            elif after > self.ended or record not in (0, self.id):
                after = 0
            watch = RecordWatch(self, after)
            if self._closed:
                watch.close()
            self._watches.add(watch)
        try:
            yield watch
        finally:
            with self._lock:
                self._watches.discard(watch)

    def close(self) -> None:
        """Ends every watch."""
        with self._lock:
            self._closed = True
            watches = list(self._watches)
        for it in watches:
            it.close()


class RecordWatch:
    """One watcher's place in a record. One thread reads; any closes."""

    def __init__(self, record: Record, after: int) -> None:
        self._record = record
        self._after = after
        self._closed = threading.Event()

    def next(self, most: int) -> Growth:
        """What has ended since it was asked before, at most so many; it waits for nothing."""
        growth = self._record.growth(self._after, most)
        self._after = growth.ended
        return growth

    def wait(self, seconds: float) -> bool:
        """Waits. Gives whether the watch goes on."""
        return not self._closed.wait(seconds)

    def close(self) -> None:
        """Ends the watch."""
        self._closed.set()
