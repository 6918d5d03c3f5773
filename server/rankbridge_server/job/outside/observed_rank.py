"""A rank of a gang as it is read from outside: its record, /proc, and its stacks by py-spy. Nothing is asked of it."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from pathlib import Path

from google.protobuf.message import DecodeError

from rankbridge.v1 import debug_service_pb2 as pb

from ...core.caller import Caller
from ...core.processes import GONE, Look, look, memory, started
from ...core.record.memory import RecordMemory
from ...core.record.recorded import Recorded
from ...doctor.evidence import Thread
from ...doctor.stacks import is_users
from ...service.records import chosen, pack
from ...service.state import state_of
from ...service.wire.verdicts import pack_process, pack_thread
from . import stacks
from .stacks import Stacks

SILENT_S = 1.0
"""A rank that has not written for so long that it runs Python does not."""
_MOST_OPERATIONS, _MOST_OF_ALL = 1_000, 8_000


class ObservedRank:
    """A rank whose record this is. It may run, be stopped, or be dead.

    `rank`: its number in the gang. Raises BadRecord, OSError if the record cannot be read.
    """

    def __init__(self, path: Path, rank: int) -> None:
        self.path = path
        self.rank = rank
        self.record = RecordMemory.open(path)
        self.pid = self.record.pid
        self._lock = threading.Lock()

    @property
    def is_dead(self) -> bool:
        """Whether its process has ended. Another one may have its number."""
        return self._look().state in (GONE, "Z", "X")

    @property
    def is_silent(self) -> bool:
        """Whether it does not run Python: it is stopped, a thread holds Python's lock, or it is dead."""
        return time.time() - self.record.alive > SILENT_S or self._look().state in ("T", "t", "Z", "X", GONE)

    def state(self) -> pb.GetEvidenceResponse:
        """What it is, as it has written last."""
        try:
            return state_of(self.record.state)
        except DecodeError:
            return pb.GetEvidenceResponse()

    def get_record(
        self, limit: int = 0, group: str = "", caller: Caller | None = None
    ) -> pb.GetRecordResponse:
        """Its record, as `DebugService.GetRecord` gives it."""
        unended = self.record.unended()
        entries = chosen([*self.record.entries(), *unended], group, caller)
        # What has ended between both reads is in both.
        last = {(it.called, it.place): it for it in entries}
        newest = sorted(last.values(), key=lambda it: not it.done)[-limit:] if unended else entries[-limit:]
        return pb.GetRecordResponse(
            operations=self._packed(newest), ended=self.record.ended, from_outside=True
        )

    def get_process(self) -> pb.Process:
        """Its process, as `DebugService.GetProcess` gives it, by the main thread."""
        return pack_process(self.pid, self.pid, self._look(), memory(self.pid))

    def get_stacks(self) -> pb.GetStacksResponse:
        """The stacks of its threads by py-spy, as `DebugService.GetStacks` gives them, or why there are none."""
        found = self._stacks(self._look())
        return pb.GetStacksResponse(
            threads=map(pack_thread, found.threads), from_outside=True, trouble=found.trouble
        )

    def get_evidence(self, interval_s: float) -> pb.GetEvidenceResponse:
        """Two looks at it, as `DebugService.GetEvidence` gives them."""
        began = time.monotonic()
        before = self._look()
        first = self._stacks(before)
        if before.state != GONE:
            # The looks' distance in time, not a wait for something.
            time.sleep(max(0.0, interval_s - (time.monotonic() - began)))
        after = self._look()
        second = self._stacks(after)
        evidence = self.state()
        script = evidence.user_thread
        evidence.record.CopyFrom(
            self.get_record(
                max(_MOST_OPERATIONS, _MOST_OF_ALL // max(1, evidence.rank.world_size)),
                caller=Caller.CONTROLLER,
            )
        )
        evidence.stacks.threads.extend(map(pack_thread, second.threads))
        evidence.stacks.from_outside, evidence.stacks.trouble = True, second.trouble
        evidence.before.CopyFrom(pack_process(self.pid, self.pid, before, memory(self.pid)))
        evidence.process.CopyFrom(pack_process(self.pid, self.pid, after, memory(self.pid)))
        evidence.still = bool(second.threads) and _places(first.threads) == _places(second.threads)
        evidence.interval_us = round((time.monotonic() - began) * 1e6)
        evidence.at_us = round(time.time() * 1e6)
        evidence.user_thread = script or _user_thread(second.threads)
        evidence.from_outside = True
        evidence.alive_us = round(self.record.alive * 1e6)
        evidence.ended_in_order = self.record.is_orderly
        if not evidence.rank.pid:
            evidence.rank.rank, evidence.rank.pid = self.rank, self.pid
        return evidence

    def _packed(self, operations: Sequence[Recorded]) -> list[pb.RecordedOperation]:
        epoch = self.record.epoch
        return [pack(it, epoch) for it in operations]

    def _look(self) -> Look:
        return look(self.pid) if started(self.pid) == self.record.began else Look()

    def _stacks(self, at: Look) -> Stacks:
        if at.state in (GONE, "Z", "X"):
            return Stacks(trouble=f"process {self.pid} of rank {self.rank} has ended")
        with self._lock:
            return stacks.read(self.pid, at.threads or {})


def _places(threads: Sequence[Thread]) -> list[object]:
    return [(it.os_id, it.frames) for it in threads]


def _user_thread(threads: Sequence[Thread]) -> int:
    """The thread that runs the user's code, as far as its stack says so; one that holds Python's lock before others."""
    users = [it for it in threads if any(map(is_users, it.frames))]
    return next((it.os_id or 0 for it in sorted(users, key=lambda it: not it.owns_gil)), 0)
