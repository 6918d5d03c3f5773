"""The stream of a rank's events to a watcher."""

from __future__ import annotations

from collections.abc import Iterator

import grpc

from rankbridge.v1 import event_pb2, rank_service_pb2 as pb

from ..core.errors import BridgeError, Failure, Place, invalid
from ..core.events import Event, Formed, Kind, Straggler
from ..core.rank import Rank
from .wire import wire

_FAILURES = {Kind.OVER: "over", Kind.MISMATCH: "mismatch", Kind.PEER_MISSING: "peer_missing"}


def watch(
    rank: Rank, request: pb.WatchEventsRequest, context: grpc.ServicerContext
) -> Iterator[pb.WatchEventsResponse]:
    """Answers a watcher, on this thread, until the watcher is gone or the rank stops."""
    log, place = rank.events, Place(rank=rank.describe().rank, operation="watch")
    try:
        after = request.after if request.HasField("after") else None
        events = log.watch([_kind(number) for number in request.kinds], after, request.log)
    except BridgeError as error:
        yield pb.WatchEventsResponse(error=wire.pack_error(error.at(place).failure))
        return
    try:
        # The end of the call wakes `next`.
        if not context.add_callback(events.close):
            return
        state = pack(events.state) if events.state else None
        yield pb.WatchEventsResponse(
            watching=pb.Watching(rank=place.rank, log=log.id, last=events.last, state=state)
        )
        while (seen := events.next()) is not None:
            yield pb.WatchEventsResponse(event=pack(seen.event), missed=seen.missed)
    finally:
        events.close()


def pack(event: Event) -> event_pb2.Event:
    """Packs an event."""
    message = event_pb2.Event(
        number=event.number, time_us=event.time_us, rank=event.rank, generation=event.generation
    )
    detail = event.detail
    if isinstance(detail, Failure):
        getattr(message, _FAILURES[event.kind]).CopyFrom(wire.pack_error(detail))
    elif isinstance(detail, Formed):
        groups = [wire.pack_group(group) for group in detail.groups]
        message.formed.CopyFrom(event_pb2.FormedEvent(world_size=detail.world_size, groups=groups))
    else:
        message.straggler.CopyFrom(pack_straggler(detail))
    return message


def pack_straggler(straggler: Straggler) -> event_pb2.StragglerEvent:
    """Packs an admission that members keep waiting."""
    return event_pb2.StragglerEvent(
        group=straggler.group,
        operation=straggler.operation,
        operation_id=straggler.operation_id,
        arrived=[
            event_pb2.ArrivedMember(rank=rank, rank_in_group=place, after_us=round(after * 1e6))
            for rank, place, after in straggler.arrived
        ],
        missing=[
            event_pb2.MissingMember(rank=rank, rank_in_group=place) for rank, place in straggler.missing
        ],
        waited_us=round(straggler.waited * 1e6),
    )


def _kind(number: event_pb2.EventKind.ValueType) -> Kind:
    try:
        return Kind[event_pb2.EventKind.Name(number).removeprefix("EVENT_KIND_")]
    except (ValueError, KeyError):
        known = ", ".join(kind.name for kind in Kind)
        raise invalid("unknown kind of event", expected=known, got=f"number {number}") from None
