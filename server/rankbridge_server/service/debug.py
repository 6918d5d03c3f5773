"""DebugService: what a rank has done and does."""

from __future__ import annotations

import sys
import threading
import time
from types import FrameType

import grpc

from rankbridge.v1 import debug_service_pb2 as pb, debug_service_pb2_grpc as stub, error_pb2

from ..core.rank import Rank
from ..core.record import Recorded


class DebugServicer(stub.DebugServiceServicer):
    """The record and the stacks of one rank."""

    def __init__(self, rank: Rank) -> None:
        self._rank = rank

    def GetRecord(self, request: pb.GetRecordRequest, context: grpc.ServicerContext) -> pb.GetRecordResponse:
        """Gives the record."""
        entries = self._rank.recorded()
        if request.group:
            entries = [it for it in entries if it.place.group == request.group]
        now = time.time() - time.monotonic()
        return pb.GetRecordResponse(
            operations=[_pack(it, now) for it in entries[-request.limit :]], ended=self._rank.record.ended
        )

    def GetStacks(self, request: pb.GetStacksRequest, context: grpc.ServicerContext) -> pb.GetStacksResponse:
        """Gives the stacks of all threads but the one that answers."""
        frames = sys._current_frames()
        return pb.GetStacksResponse(
            threads=[
                pb.ThreadStack(
                    name=it.name, native_id=it.native_id or 0, frames=_frames(frames.get(it.ident or 0))
                )
                # In the order in which they began: the main one is the first.
                for it in threading.enumerate()
                if it is not threading.current_thread()
            ]
        )


def _pack(it: Recorded, epoch: float) -> pb.RecordedOperation:
    """`epoch`: the time at which the monotonic clock was 0, in seconds since 1970."""
    packed = pb.RecordedOperation(
        operation=it.place.operation,
        group=it.place.group,
        operation_id=it.place.operation_id,
        session_id=it.session_id,
        generation=it.place.generation,
        contract=it.contract,
        site=it.site,
        function=it.function,
        called_us=round((epoch + it.called) * 1e6),
        phase=error_pb2.Phase.Value(f"PHASE_{it.phase.name}"),
        message=it.message,
        indefinite=it.indefinite,
    )
    if it.code is not None:
        packed.code = error_pb2.ErrorCode.Value(f"ERROR_CODE_{it.code.name}")
    for name, moment in (("announced_us", it.announced), ("entered_us", it.entered), ("done_us", it.done)):
        if moment:
            setattr(packed, name, round((moment - it.called) * 1e6))
    return packed


def _frames(frame: FrameType | None) -> list[pb.StackFrame]:
    found = []
    while frame is not None:
        code = frame.f_code
        found.append(pb.StackFrame(function=code.co_qualname, file=code.co_filename, line=frame.f_lineno))
        frame = frame.f_back
    return found
