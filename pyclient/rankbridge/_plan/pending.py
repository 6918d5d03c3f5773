"""What ranks have accepted and not answered yet, and for whom they wait; and how it is read from the wire."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from rankbridge._plan.wire import fields_of, short_name
from rankbridge.v1 import error_pb2, event_pb2, rank_service_pb2


@dataclass(frozen=True, slots=True, kw_only=True)
class PendingOperation:
    """An operation that a rank has accepted and not answered yet.

    Attributes:
        operation: Its kind: "all_reduce".
        group: Name of its group.
        operation_id: Its operation id. Empty: its caller gave none.
        session_id: Session of its caller. Empty: the shared one.
        phase: "check" (queued behind others of its group), "admission" (waiting for the other members), "data" (in the
            backend).
        waited: Seconds since the rank accepted it.
        remaining: Seconds until its deadline.
    """

    operation: str
    group: str
    operation_id: str
    session_id: str
    phase: str
    waited: float
    remaining: float


@dataclass(frozen=True, slots=True, kw_only=True)
class PendingAdmission:
    """An admission that some members of a group keep waiting, as the group's first rank sees it.

    Attributes:
        group: Name of the group.
        operation: Kind of operation that the first member asked for.
        operation_id: Its id. Empty: no member has named one.
        arrived: Ranks that have come, with how many seconds after the first.
        missing: Ranks that have not come.
        waited: Seconds since the first came.
    """

    group: str
    operation: str
    operation_id: str
    arrived: Mapping[int, float]
    missing: tuple[int, ...]
    waited: float


@dataclass(frozen=True, slots=True, kw_only=True)
class RankPending:
    """What one rank has not answered yet.

    Attributes:
        operations: Operations accepted and not yet answered, the oldest first.
        admissions: Admissions that members keep waiting, of the groups of which it is the first member.
    """

    operations: tuple[PendingOperation, ...]
    admissions: tuple[PendingAdmission, ...]


def pending_from_wire(pending: rank_service_pb2.ListPendingResponse) -> RankPending:
    """Reads a rank's pending operations."""
    return RankPending(
        operations=tuple(map(_operation, pending.operations)),
        admissions=tuple(map(_admission, pending.admissions)),
    )


def _operation(it: rank_service_pb2.PendingOperation) -> PendingOperation:
    return PendingOperation(
        **fields_of(PendingOperation, it),
        phase=short_name(error_pb2.Phase.items(), it.phase),
        waited=it.waited_us / 1e6,
        remaining=it.remaining_us / 1e6,
    )


def _admission(it: event_pb2.StragglerEvent) -> PendingAdmission:
    return PendingAdmission(
        **fields_of(PendingAdmission, it),
        arrived={member.rank: member.after_us / 1e6 for member in it.arrived},
        missing=tuple(member.rank for member in it.missing),
        waited=it.waited_us / 1e6,
    )
