"""The record of a rank on the wire, and the stream of how it grows."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence

import grpc

from rankbridge.v1 import debug_service_pb2 as pb, error_pb2

from ..core.caller import Caller
from ..core.errors import BridgeError, Place, invalid
from ..core.rank import Rank
from ..core.record.record import RecordWatch
from ..core.record.recorded import Recorded
from .wire import wire

_INTERVAL_MS = 250
_LEAST_MS, _MOST_MS = 50, 10_000
AT_ONCE = 1_000
"""Operations in a response, at most."""
SILENCE_S = 1.0
"""Longest time between responses, also without news: they show the watcher that the rank lives."""


def watch(
    rank: Rank, request: pb.WatchRecordRequest, context: grpc.ServicerContext
) -> Iterator[pb.WatchRecordResponse]:
    """Answers a watcher, on this thread, until the watcher is gone or the rank stops."""
    after = request.after if request.HasField("after") else None
    try:
        interval = interval_of(request)
        with rank.record.watch(after, request.record, request.last) as watch:
            if context.add_callback(watch.close):
                yield from _growths(rank, watch, request, interval)
    except BridgeError as error:
        place = Place(rank=rank.describe().rank, group=request.group, operation="watch_record")
        yield pb.WatchRecordResponse(error=wire.pack_error(error.at(place).failure))


def interval_of(request: pb.WatchRecordRequest) -> float:
    """Seconds between two responses. Raises INVALID_ARGUMENT."""
    interval = (request.interval_ms or _INTERVAL_MS) / 1000
    if not _LEAST_MS <= interval * 1000 <= _MOST_MS:
        expected = f"{_LEAST_MS} to {_MOST_MS}"
        raise invalid("interval_ms is out of range", expected=expected, got=str(request.interval_ms))
    return interval


def _growths(
    rank: Rank, watch: RecordWatch, request: pb.WatchRecordRequest, interval: float
) -> Iterator[pb.WatchRecordResponse]:
    wanted = request.group, caller_of(request)
    # Once: an operation has the same time in each response.
    epoch = time.time() - time.monotonic()
    sent, at = None, 0.0
    goes_on = True
    while goes_on:
        growth, now = watch.next(AT_ONCE), time.monotonic()
        operations = chosen(growth.operations, *wanted)
        pending = chosen(rank.under_way(), *wanted)
        is_news = bool(operations or growth.lost) or pending != sent
        if is_news or sent is None or now - at >= SILENCE_S:
            sent, at = pending, now
            yield pb.WatchRecordResponse(
                growth=pb.RecordGrowth(
                    operations=[pack(it, epoch) for it in operations],
                    pending=[pack(it, epoch) for it in pending],
                    ended=growth.ended,
                    lost=growth.lost,
                    record=rank.record.id,
                    at_us=round((epoch + now) * 1e6),
                )
            )
        goes_on = watch.wait(0.0 if len(growth.operations) == AT_ONCE else interval)


def caller_of(request: pb.GetRecordRequest | pb.WatchRecordRequest) -> Caller | None:
    """Whose operations are asked for; None: everybody's."""
    if not request.HasField("by_script"):
        return None
    return Caller.SCRIPT if request.by_script else Caller.CONTROLLER


def chosen(
    operations: Sequence[Recorded], group: str = "", caller: Caller | None = None
) -> Sequence[Recorded]:
    """Those of a group and of a caller. Empty, None: of all."""
    if not group and caller is None:
        return operations
    return [
        it for it in operations if group in ("", it.place.group) and (caller is None or it.caller is caller)
    ]


def pack(it: Recorded, epoch: float) -> pb.RecordedOperation:
    """Packs an operation. `epoch`: the time at which the monotonic clock was 0, in seconds since 1970."""
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
        by_script=it.caller is Caller.SCRIPT,
        number=it.number,
    )
    if it.sequence >= 0:
        packed.sequence = it.sequence
    if it.code is not None:
        packed.code = error_pb2.ErrorCode.Value(f"ERROR_CODE_{it.code.name}")
    for name, moment in (("announced_us", it.announced), ("entered_us", it.entered), ("done_us", it.done)):
        if moment:
            setattr(packed, name, round((moment - it.called) * 1e6))
    return packed
