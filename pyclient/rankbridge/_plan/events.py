"""Events of ranks: how they are asked for, and read from the wire."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

from rankbridge._plan.calls import Call, Shape
from rankbridge._plan.failures import error_from_wire
from rankbridge._plan.groups import Group
from rankbridge._plan.operations import Scope
from rankbridge._plan.operations.declare import path_of, timeout_of
from rankbridge._plan.positions import Position
from rankbridge._plan.status import group_from_wire
from rankbridge._plan.wire import fields_of, number_of
from rankbridge.errors import ProtocolError, RankBridgeError
from rankbridge.v1 import event_pb2, rank_service_pb2

EventKind = Literal["formed", "over", "mismatch", "peer_missing", "straggler"]
"""What kinds of events there are."""

AHEAD = 64
"""How many responses are read before they are asked for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """Something that happened on a rank.

    Attributes:
        number: Ascending by one on the rank, from 1; begins again with a new process.
        time: When it happened, by the clock of the rank's host: seconds since 1970 in UTC.
        rank: Rank in the gang that tells it.
        generation: Generation in which it happened.
        missed: Events before it that the rank dropped before this watcher could get them. 0: none.
    """

    number: int
    time: float
    rank: int
    generation: int
    missed: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class FormedEvent(Event):
    """A generation was formed; every rank tells it.

    Attributes:
        world_size: Ranks in the gang.
        groups: Groups that were formed with it, by name, as the rank sees them.
    """

    world_size: int
    groups: tuple[Group, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class OverEvent(Event):
    """A generation is over; every rank tells it.

    Attributes:
        error: Why. Lost ranks are in its `ranks`.
    """

    error: RankBridgeError


@dataclass(frozen=True, slots=True, kw_only=True)
class MismatchEvent(Event):
    """The members of a group asked for different things; the group's first rank tells it.

    Attributes:
        error: A ``MismatchError`` that shows every side.
    """

    error: RankBridgeError


@dataclass(frozen=True, slots=True, kw_only=True)
class PeerMissingEvent(Event):
    """Some members of a group did not call before the timeout; the group's first rank tells it.

    Attributes:
        error: A ``PeerMissingError`` that names them.
    """

    error: RankBridgeError


@dataclass(frozen=True, slots=True, kw_only=True)
class StragglerEvent(Event):
    """Some members of a group keep the others waiting; the group's first rank tells it, while they do.

    Once all have come there is another, with nobody in `missing`.

    Attributes:
        group: Name of the group.
        operation: Kind of operation that the first member asked for.
        operation_id: Its id. Empty: no member has named one.
        arrived: Ranks that have come, with how many seconds after the first.
        missing: Ranks that have not come.
        waited: How long the first has been waiting, or had when the last one came, in seconds.
    """

    group: str
    operation: str
    operation_id: str
    arrived: Mapping[int, float]
    missing: tuple[int, ...]
    waited: float


@dataclass(frozen=True, slots=True, kw_only=True)
class UnknownEvent(Event):
    """Something that this version of the client does not know."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchEnded:
    """One rank of a gang tells nothing more; the others do.

    Attributes:
        rank: Rank in the gang.
        error: Why. None: it has stopped in good order.
    """

    rank: int
    error: RankBridgeError | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Watching:
    """What a rank tells a watcher first.

    Attributes:
        rank: Rank in the gang.
        log: Names the log in which this process of the rank numbers its events.
        last: Number of its newest event, whatever its kind. 0: nothing has happened yet.
        state: The newest event of kind formed or over. None: no generation was formed yet.
    """

    rank: int
    log: int
    last: int
    state: Event | None


class Said(NamedTuple):
    """What a rank has said: what its stream gives, or the error that ended it; None: it has ended in good order."""

    rank: int
    what: Any


_number_of = number_of(event_pb2.EventKind.DESCRIPTOR, "events")


def watch(
    scope: Scope, kinds: Iterable[EventKind], after: Position | None, timeout: float | None
) -> Call[Watching | Event]:
    """Asks a rank for its events; the call's deadline is that of the first response.

    Raises:
        InvalidArgumentError: There is no such kind.
    """
    request = rank_service_pb2.WatchEventsRequest(
        kinds=[_number_of(kind) for kind in kinds],
        after=after.number if after else None,
        log=after.log if after else 0,
    )
    return Call(
        kind="events",
        path=path_of("RankService/WatchEvents"),
        rank=scope.rank,
        deadline=timeout_of(scope, timeout),
        shape=Shape.DOWNLOAD,
        request=request.SerializeToString(),
        read=_told,
    )


def starts_at(
    after: Mapping[int, Position] | Position | int | None, ranks: Sequence[int]
) -> dict[int, Position | None]:
    """Where the watch of each rank begins; None: with what happens from now on."""
    if isinstance(after, Mapping):
        return {rank: after.get(rank) for rank in ranks}
    return dict.fromkeys(ranks, Position(after) if isinstance(after, int) else after)


def start_of(asked: Position | None, watching: Watching) -> Position:
    """Where the watch of a rank has begun.

    As the rank reads it: a position that it cannot have reported begins with all that it has.
    """
    if asked is None:
        return Position(watching.last, watching.log)
    known = asked.log in (0, watching.log) and asked.number <= watching.last
    return Position(asked.number if known else 0, watching.log)


def _told(message: bytes) -> Watching | Event:
    response = rank_service_pb2.WatchEventsResponse.FromString(message)
    match response.WhichOneof("outcome"):
        case "watching":
            it = response.watching
            state = _event(it.state, 0) if it.HasField("state") else None
            return Watching(state=state, **fields_of(Watching, it))
        case "event":
            return _event(response.event, response.missed)
        case "error":
            raise error_from_wire(response.error)
        case _:
            raise ProtocolError(
                "a response tells nothing", expected="watching, event or error", got="neither"
            )


def _event(it: event_pb2.Event, missed: int) -> Event:
    common = {"time": it.time_us / 1e6, "missed": missed, **fields_of(Event, it)}
    match it.WhichOneof("kind"):
        case "formed":
            groups = tuple(group_from_wire(group) for group in it.formed.groups)
            return FormedEvent(**common, world_size=it.formed.world_size, groups=groups)
        case "straggler":
            return StragglerEvent(
                **common,
                **fields_of(StragglerEvent, it.straggler),
                arrived={member.rank: member.after_us / 1e6 for member in it.straggler.arrived},
                missing=tuple(member.rank for member in it.straggler.missing),
                waited=it.straggler.waited_us / 1e6,
            )
        case None:
            return UnknownEvent(**common)
        case kind:
            return _ERRORS[kind](**common, error=error_from_wire(getattr(it, kind)))


_ERRORS: dict[str, type[OverEvent | MismatchEvent | PeerMissingEvent]] = {
    "over": OverEvent,
    "mismatch": MismatchEvent,
    "peer_missing": PeerMissingEvent,
}
