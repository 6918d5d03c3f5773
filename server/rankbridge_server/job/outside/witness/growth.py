"""The stream of how a rank's record grows, read from its file: it goes on while the rank is stopped."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator

import grpc

from rankbridge.v1 import debug_service_pb2 as pb

from ....core.errors import BridgeError, Place
from ....service.records import AT_ONCE, SILENCE_S, caller_of, chosen, interval_of, pack
from ....service.wire import wire
from ..observed_rank import ObservedRank


def growths(
    rank: ObservedRank, request: pb.WatchRecordRequest, context: grpc.ServicerContext
) -> Iterator[pb.WatchRecordResponse]:
    """Answers a watcher until it is gone, or the rank is dead."""
    try:
        interval = interval_of(request)
    except BridgeError as error:
        place = Place(rank=rank.rank, group=request.group, operation="watch_record")
        yield pb.WatchRecordResponse(error=wire.pack_error(error.at(place).failure))
        return
    gone = threading.Event()
    if not context.add_callback(gone.set):
        return
    record, wanted = rank.record, (request.group, caller_of(request))
    after, epoch = _begin(rank, request), record.epoch
    sent: object = None
    at = 0.0
    while not rank.is_dead:
        operations, ended = record.after(after, AT_ONCE)
        lost = ended - after - len(operations)
        after = ended
        mine, pending = chosen(operations, *wanted), chosen(record.unended(), *wanted)
        now = time.monotonic()
        if mine or lost or pending != sent or now - at >= SILENCE_S:
            sent, at = pending, now
            yield pb.WatchRecordResponse(
                growth=pb.RecordGrowth(
                    operations=[pack(it, epoch) for it in mine],
                    pending=[pack(it, epoch) for it in pending],
                    ended=ended,
                    lost=lost,
                    record=record.id,
                    at_us=round((epoch + now) * 1e6),
                    from_outside=rank.is_silent,
                )
            )
        if gone.wait(0.0 if len(operations) == AT_ONCE else interval):
            return
    context.abort(grpc.StatusCode.UNAVAILABLE, f"process {rank.pid} of rank {rank.rank} has ended")


def _begin(rank: ObservedRank, request: pb.WatchRecordRequest) -> int:
    """The number after which a watch begins, as of `Record.watch`."""
    record, ended = rank.record, rank.record.ended
    if not request.HasField("after"):
        return ended - min(request.last, ended, record.kept)
    return 0 if request.after > ended or request.record not in (0, record.id) else request.after
