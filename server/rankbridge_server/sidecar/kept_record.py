"""The record of a rank in a file of the folder for observers: it is read from outside, and outlives the rank."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable
from pathlib import Path

from ..core.events import Event
from ..core.rank import Rank
from ..core.record.record import Record
from .witness import Witness

ALIVE_S = 0.25
"""How often a rank writes that it runs Python."""


class KeptRecord:
    """Keeps a record's file true: that the rank runs, what it is, and what is queued; and sees to the folder's witness.

    `describe`: packs what the rank is.
    """

    def __init__(self, rank: Rank, record: Record, describe: Callable[[int], bytes], folder: Path) -> None:
        """`describe`: is given how many bytes there are for it. `folder`: for observers."""
        self._rank = rank
        self._record = record
        self._describe = describe
        self._witness = Witness(folder)
        self._changed = threading.Event()
        self._stopped = False
        self._lock = threading.Lock()
        self._looks = itertools.count(1)
        self._written = 0
        self._changed.set()
        rank.events.notes.append(self._happened)
        rank.regrouped = self._changed.set
        # Whoever learns from an operation why the generation has ended may kill the rank, and read it in the record.
        rank.over = self._write_state
        self._thread = threading.Thread(target=self._run, name="record", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Writes that the rank ends because it was told to."""
        self._stopped = True
        self._changed.set()
        self._thread.join()
        self._write_state()
        self._record.end()
        self._witness.close()

    def _happened(self, event: Event) -> None:
        # Whoever adds an event may hold the generation's lock, which a description needs.
        self._changed.set()

    def _write_state(self) -> None:
        look = next(self._looks)
        state = self._describe(self._record.most_state)
        with self._lock:
            # Of two threads, the one that looked first may come last.
            if look > self._written:
                self._written = look
                self._record.describe(state)

    def _run(self) -> None:
        while not self._stopped:
            self._record.live()
            self._witness.ensure()
            if self._changed.wait(ALIVE_S):
                self._changed.clear()
                self._write_state()
            self._rank.script_calls.settle()
            for task in self._rank.pending()[0]:
                # What has entered no phase yet waits behind others, or is held.
                if not task.slot:
                    task.note_now()
