"""The state of a job under `rankbridge watch`, from the records that its ranks write."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ...core.printable import lines, printable
from ...core.processes import GONE, look
from ...doctor.judge import judge
from ...job.outside import rings
from ...job.outside.processes import NoJob, host
from .. import watched
from ..doctor import evidence_of
from .model import Model, Row
from .source import Tensors
from .verdicts import as_shown

if TYPE_CHECKING:
    from rankbridge import RecordedOperation

PATIENCE_S = 2.0
_INTERVAL_S = 0.5
_VERDICT_EVERY_S = 5.0
_NEWEST = 1_000
"""Calls of a rank that are read, the newest."""
_STOP_S = 30.0


class FolderSource:
    """Reads the records of a folder again and again, from a thread of its own. It touches nothing in the ranks."""

    def __init__(self, model: Model, folder: Path) -> None:
        self._model = model
        self._folder = folder
        self._ended = threading.Event()
        self._asked = threading.Event()
        self._thread: threading.Thread | None = None
        self._sent: dict[int, tuple[int, set[tuple[object, ...]]]] = {}

    def start(self) -> None:
        """Begins to look."""
        self._ended.clear()
        self._asked.set()
        self._sent = {}
        self._model.reset()
        self._thread = threading.Thread(target=self._watch, name="page-source", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Ends it."""
        self._ended.set()
        if self._thread is not None:
            self._thread.join(_STOP_S)
            self._thread = None

    def ask(self) -> None:
        """Asks for a verdict soon."""
        self._asked.set()

    def tensors(self, rank: int) -> Tensors:
        """What a rank holds, is not recorded."""
        return {"tensors": [], "why": "a job's record has no tensors"}

    def _watch(self) -> None:
        judged, trouble = 0.0, False
        while not self._ended.wait(_INTERVAL_S):
            try:
                found = rings.in_directory(self._folder, _NEWEST)
            except (rings.BadRing, OSError) as error:
                self._model.described({0: _unread(error)}, {})
                continue
            self._read(found)
            since = self._model.waits_since()
            waits = since is not None and time.time() - since > PATIENCE_S
            is_due = time.monotonic() - judged >= _VERDICT_EVERY_S
            trouble = trouble or waits or not self._model.is_well()
            if found and (self._asked.is_set() or (trouble and is_due)):
                self._asked.clear()
                trouble = self._judge()
                judged = time.monotonic()

    def _read(self, found: Sequence[rings.Record]) -> None:
        every = watched.read(found)
        groups = {
            names[group.name]: group.ranks
            for it, names, _ in every
            for group in it.groups
            if it.rank in group.ranks
        }
        self._model.described({it.rank: _described(it) for it in found}, dict(sorted(groups.items())))
        for it, _, operations in every:
            ended = [each for each in operations if each.done is not None]
            pending = [each for each in operations if each.done is None]
            self._model.grew(it.rank, self._new(it, ended), pending)

    def _new(self, record: rings.Record, ended: Sequence[RecordedOperation]) -> list[RecordedOperation]:
        """The operations that the model does not have yet."""
        pid, sent = self._sent.get(record.rank, (record.pid, set()))
        keys = [(it.group, it.operation, it.operation_id, it.called) for it in ended]
        self._sent[record.rank] = (record.pid, set(keys))
        known = sent if pid == record.pid else set()
        return [it for it, key in zip(ended, keys, strict=True) if key not in known]

    def _judge(self) -> bool:
        """Finds a verdict; gives whether something is wrong."""
        try:
            verdict = judge(evidence_of(self._folder, inject=False), PATIENCE_S)
        except (NoJob, OSError) as error:
            self._model.described({0: _unread(error)}, {})
            return False
        waiting = {it.rank: it.waits_for for it in verdict.waits}
        shown = as_shown(verdict, time.time())
        self._model.judged(shown, waiting, [it.rank for it in verdict.culprits], verdict.cycle)
        return not shown["calm"]


def _described(it: rings.Record) -> Row:
    state = look(it.pid).state
    runs = state not in (GONE, "Z")
    how = {0: "runs" if runs else "dead", 1: "ended", 2: "failed"}[it.how if it.how in (1, 2) else 0]
    return {
        "host": printable(host()),
        "pid": it.pid,
        "backend": "",
        "state": "stopped" if state == "T" else how,
        "why": lines(it.reason),
        "since": it.ended_at or 0.0,
        "generation": 0,
        "refs": 0,
        "bytes": 0,
        "sessions": [],
        "reached": runs,
        "well": how in ("runs", "ended") and state != "T",
    }


def _unread(error: Exception) -> Row:
    return {
        **dict.fromkeys(("host", "backend"), ""),
        **dict.fromkeys(("pid", "since", "generation", "refs", "bytes"), 0),
        "sessions": [],
        "state": "not read",
        "why": lines(str(error)),
        "reached": False,
        "well": False,
    }
