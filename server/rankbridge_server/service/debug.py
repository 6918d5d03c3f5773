"""DebugService: what a rank has done and does, and what is wrong with its gang."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import FrameType

import grpc

from rankbridge.v1 import (
    debug_service_pb2 as pb,
    debug_service_pb2_grpc as stub,
    rank_service_pb2 as rank_pb,
)

from ..core.caller import Caller
from ..core.frames import current_frames
from ..core.processes import GONE, Look, look, memory
from ..core.rank import Rank
from ..core.torch_state import torch_state
from ..doctor.evidence import Thread
from ..doctor.looks import between
from ..doctor.patience import PATIENCE_S
from ..doctor.testimony import Silence, Testimony
from ..links.wire import pack_activity
from . import records
from .answering import OfRank, answers
from .gang_verdict import verdict_on
from .rank import RankServicer
from .wire import verdicts
from .wire.torch_states import pack_torch_state

_INTERVAL_MS = 200
_MOST_INTERVAL_MS = 5_000
_MOST_OF_COORDINATORS = 1_000
_MOST_OPERATIONS, _MOST_OF_ALL = 1_000, 8_000
"""Of a rank, and of all ranks: where these are few, each gives more."""
_MOST_INSIDE = 16
"""Ranks that do not answer whose stacks are read: each takes 0.1 s."""


LookInside = Callable[[int, Mapping[int, str]], Sequence[Thread]]


class DebugServicer(OfRank, stub.DebugServiceServicer):
    """The record, the stacks and the process of one rank; verdicts on its gang. `described`: describes the rank.

    `look_inside`: gives the threads of another process of this host, by its pid and the states of its threads.
    """

    def __init__(
        self, rank: Rank, described: RankServicer, look_inside: LookInside = lambda pid, states: ()
    ) -> None:
        super().__init__(rank)
        self._described = described
        self._look_inside = look_inside

    def GetRecord(self, request: pb.GetRecordRequest, context: grpc.ServicerContext) -> pb.GetRecordResponse:
        """Gives the record."""
        entries = records.chosen(self._rank.recorded(), request.group, records.caller_of(request))
        now = time.time() - time.monotonic()
        return pb.GetRecordResponse(
            operations=[records.pack(it, now) for it in entries[-request.limit :]],
            ended=self._rank.record.ended,
        )

    def WatchRecord(
        self, request: pb.WatchRecordRequest, context: grpc.ServicerContext
    ) -> Iterator[pb.WatchRecordResponse]:
        """Streams the record as it grows."""
        return records.watch(self._rank, request, context)

    def GetStacks(self, request: pb.GetStacksRequest, context: grpc.ServicerContext) -> pb.GetStacksResponse:
        """Gives the stacks of all threads but the one that answers."""
        return pb.GetStacksResponse(threads=_stacks(first=0))

    def GetProcess(
        self, request: pb.GetProcessRequest, context: grpc.ServicerContext
    ) -> pb.GetProcessResponse:
        """Gives what the kernel says of the process."""
        return pb.GetProcessResponse(process=_process(_native_id(self._rank.user_thread())))

    def GetEvidence(
        self, request: pb.GetEvidenceRequest, context: grpc.ServicerContext
    ) -> pb.GetEvidenceResponse:
        """Looks twice at the rank."""
        began = time.monotonic()
        user = self._rank.user_thread()
        before, at_first = _process(_native_id(user)), _place(user)
        interval = min(request.interval_ms or _INTERVAL_MS, _MOST_INTERVAL_MS) / 1000
        # The looks' distance in time, not a wait for something.
        time.sleep(interval)
        if self._rank.user_thread() != user:
            user, at_first = self._rank.user_thread(), None
        rank = self._described.DescribeRank(rank_pb.DescribeRankRequest(), context)
        most = max(_MOST_OPERATIONS, _MOST_OF_ALL // max(1, rank.world_size))
        return pb.GetEvidenceResponse(
            rank=rank,
            pending=self._described.ListPending(rank_pb.ListPendingRequest(), context),
            # Of calls of the user's own code there is torch's state, which has them from their first one on.
            record=self.GetRecord(pb.GetRecordRequest(limit=most, by_script=False), context),
            activity=pack_activity(self._rank.activity()),
            stacks=pb.GetStacksResponse(threads=_stacks(first=user)),
            before=before,
            process=_process(_native_id(user)),
            still=user != 0 and at_first == _place(user),
            interval_us=round((time.monotonic() - began) * 1e6),
            at_us=round(time.time() * 1e6),
            user_thread=_native_id(user),
            torch=self._torch(user, rank.generation_since_us),
        )

    def _torch(self, user: int, since_us: int) -> pb.TorchState | None:
        """What torch has of a job's script; of functions, in this generation: groups of the last one have its names."""
        script, coordinators = self._rank.has_script, {**self._rank.script_calls.coordinators}
        entries = records.chosen(self._rank.recorded(), caller=Caller.SCRIPT) if coordinators else ()
        now = time.time() - time.monotonic()
        calls = [
            records.pack(it, now)
            for it in entries
            if (group := coordinators.get(it.place.group)) is not None and it.called >= group.since
        ]
        # `torch_state` stops the collecting of garbage itself, but knows nothing of others who do.
        with current_frames():
            state = torch_state(user)
        return pack_torch_state(
            state,
            script,
            0 if script else since_us,
            {name: it.ranks for name, it in coordinators.items()},
            calls[-_MOST_OF_COORDINATORS:],
        )

    @answers(pb.DiagnoseResponse, "diagnose")
    def Diagnose(self, request: pb.DiagnoseRequest) -> pb.Verdict:
        """Judges the gang."""
        verdict = verdict_on(
            request.evidence,
            self._silences,
            at=time.time(),
            patience_s=request.patience_ms / 1000 or PATIENCE_S,
        )
        self._rank.diagnosed(verdict.kind)
        return verdicts.pack_verdict(verdict)

    def _silences(
        self, ranks: Sequence[int], testimonies: Sequence[Testimony], interval_s: float
    ) -> list[Silence]:
        """Ranks that have not answered, with two looks at those whose process is of this host."""
        pids = {rank: self._rank.pid_of(rank) for rank in ranks}
        inside = [rank for rank, pid in pids.items() if pid][:_MOST_INSIDE]
        before = {rank: self._seen(pid, rank in inside) for rank, pid in pids.items() if pid}
        if before:
            time.sleep(min(interval_s, _MOST_INTERVAL_MS / 1000))
        found = []
        for rank, pid in pids.items():
            if not pid:
                found.append(Silence(rank=rank, process=between(_UNSEEN, _UNSEEN)))
                continue
            (first, was), (second, threads) = before[rank], self._seen(pid, rank in inside)
            still = [it.frames for it in was] == [it.frames for it in threads]
            found.append(
                Silence(
                    rank=rank,
                    pid=pid,
                    host=self._described.host,
                    process=between(first, second),
                    threads=threads,
                    still=still,
                )
            )
        return found

    def _seen(self, pid: int, inside: bool) -> tuple[Look, tuple[Thread, ...]]:
        seen = look(pid)
        there = inside and seen.state not in (GONE, "Z")
        return seen, tuple(self._look_inside(pid, seen.threads or {})) if there else ()


_UNSEEN = Look(state="?")


def _process(thread: int) -> pb.Process:
    pid = os.getpid()
    return verdicts.pack_process(pid, thread, look(pid, thread), memory(pid))


def _native_id(thread: int) -> int:
    """The kernel's number of a thread, by Python's; 0: there is none."""
    return next((it.native_id or 0 for it in threading.enumerate() if it.ident == thread), 0)


def _place(thread: int) -> tuple[tuple[str, int], ...] | None:
    with current_frames() as frames:
        frame = frames.get(thread)
        return None if frame is None else tuple((it.file, it.line) for it in _frames(frame))


def _stacks(first: int) -> list[pb.ThreadStack]:
    """The stacks of all threads but this one, in the order in which they began, but `first` first."""
    threads = [it for it in threading.enumerate() if it is not threading.current_thread()]
    with current_frames() as frames:
        return [
            pb.ThreadStack(
                name=it.name, native_id=it.native_id or 0, frames=_frames(frames.get(it.ident or 0))
            )
            for it in sorted(threads, key=lambda it: it.ident != first)
        ]


def _frames(frame: FrameType | None) -> list[pb.StackFrame]:
    found = []
    while frame is not None:
        code = frame.f_code
        found.append(pb.StackFrame(function=code.co_qualname, file=code.co_filename, line=frame.f_lineno))
        frame = frame.f_back
    return found
