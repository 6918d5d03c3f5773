"""Describing ranks, and forming a generation of them."""

from __future__ import annotations

from collections.abc import Iterable

from rankbridge._plan.calls import MARGIN, Call, Shape
from rankbridge._plan.groups import Group
from rankbridge._plan.metrics import MetricFamily, metrics_from_wire
from rankbridge._plan.operations.declare import (
    Scope,
    checked_rank,
    milliseconds,
    operation,
    outcome_of,
    path_of,
    plain_call,
    timeout_of,
)
from rankbridge._plan.pending import RankPending, pending_from_wire
from rankbridge._plan.positions import Position
from rankbridge._plan.record import (
    RecordedOperation,
    RecordGrowth,
    ThreadStack,
    by_script_of,
    growth_from_wire,
    record_from_wire,
    stacks_from_wire,
)
from rankbridge._plan.status import Formed, RankStatus, formed_from_wire, status_from_wire
from rankbridge._plan.verdict import Verdict, verdict_from_wire
from rankbridge.errors import InvalidArgumentError
from rankbridge.v1 import debug_service_pb2, gang_service_pb2, rank_service_pb2

EVIDENCE_S = 2.0
"""Seconds that a rank has to give its evidence."""


@operation
def status(scope: Scope) -> Call[RankStatus]:
    """Describes one rank."""
    return plain_call(scope, "status", rank_service_pb2.DescribeRankRequest(), status_from_wire, brief=True)


@operation
def pending(scope: Scope) -> Call[RankPending]:
    """Lists what one rank has accepted and not answered yet."""
    return plain_call(scope, "pending", rank_service_pb2.ListPendingRequest(), pending_from_wire, brief=True)


@operation
def metrics(scope: Scope) -> Call[list[MetricFamily]]:
    """Asks one rank for what it has counted and what it holds."""
    return plain_call(scope, "metrics", rank_service_pb2.GetMetricsRequest(), metrics_from_wire)


@operation
def record(
    scope: Scope, *, limit: int = 0, group: str = "", caller: str = ""
) -> Call[list[RecordedOperation]]:
    """Asks one rank for its record."""
    if not 0 <= limit < 2**32:
        raise InvalidArgumentError("limit is no number of operations", expected="0 or more", got=str(limit))
    request = debug_service_pb2.GetRecordRequest(
        limit=limit, group=group, by_script=by_script_of(caller, "record")
    )
    return plain_call(scope, "record", request, record_from_wire)


def watch_record(
    scope: Scope,
    *,
    group: str,
    after: Position | None,
    last: int,
    interval: float,
    timeout: float | None,
    caller: str = "",
) -> Call[RecordGrowth]:
    """Asks one rank for its record as it grows; the call's deadline is that of the first response.

    Raises:
        InvalidArgumentError: `interval` or `last` does not fit on the wire, or nobody is called `caller`.
    """
    if not 0 <= last < 2**32:
        raise InvalidArgumentError(
            "last is no number of operations", operation="watch_record", expected="0 or more", got=str(last)
        )
    if not 0 < interval < 2**32 / 1000:
        raise InvalidArgumentError(
            "interval is no time", operation="watch_record", expected="0.05 to 10 seconds", got=str(interval)
        )
    request = debug_service_pb2.WatchRecordRequest(
        group=group,
        after=after.number if after else None,
        record=after.log if after else 0,
        interval_ms=milliseconds(interval),
        last=last,
        by_script=by_script_of(caller, "watch_record"),
    )
    return Call(
        kind="watch_record",
        path=path_of("DebugService/WatchRecord"),
        rank=scope.rank,
        group=group,
        deadline=timeout_of(scope, timeout),
        shape=Shape.DOWNLOAD,
        request=request.SerializeToString(),
        read=outcome_of(
            debug_service_pb2.WatchRecordResponse, lambda growth: growth_from_wire(scope.rank, growth)
        ),
    )


@operation
def stacks(scope: Scope) -> Call[list[ThreadStack]]:
    """Asks one rank for the stacks of its threads."""
    return plain_call(scope, "stacks", debug_service_pb2.GetStacksRequest(), stacks_from_wire)


def evidence(scope: Scope) -> Call[debug_service_pb2.GetEvidenceResponse]:
    """Asks one rank for all that a verdict needs of it. One that does not answer soon does not hold up the others."""
    request = debug_service_pb2.GetEvidenceRequest()
    return plain_call(scope, "evidence", request, _as_it_is, timeout=min(EVIDENCE_S, timeout_of(scope, None)))


def diagnose(
    scope: Scope, evidence: Iterable[debug_service_pb2.GetEvidenceResponse], *, patience: float = 2.0
) -> Call[Verdict]:
    """Asks one rank for a verdict on what ranks have answered."""
    if not 0.001 <= patience < 2**32 / 1000:
        raise InvalidArgumentError("patience is no time", expected="0.001 s or more", got=str(patience))
    request = debug_service_pb2.DiagnoseRequest(evidence=evidence, patience_ms=round(patience * 1000))
    return plain_call(scope, "diagnose", request, verdict_from_wire)


def _as_it_is(evidence: debug_service_pb2.GetEvidenceResponse) -> debug_service_pb2.GetEvidenceResponse:
    return evidence


def kill(scope: Scope, pid: int | None) -> Call[int]:
    """Kills a rank's process, if it is the one that is meant."""
    return plain_call(scope, "kill", rank_service_pb2.KillRankRequest(pid=pid or 0), int)


@operation
def form(
    scope: Scope,
    endpoints: Iterable[str],
    *,
    groups: Iterable[Group | tuple[str, Iterable[int]]] = (),
    timeout: float | None = None,
) -> Call[Formed]:
    """Forms the next generation of all ranks named."""
    pairs = [(group.name, group.ranks) if isinstance(group, Group) else group for group in groups]
    descriptions = [
        rank_service_pb2.GroupDescription(name=name, ranks=[checked_rank("a member", rank) for rank in ranks])
        for name, ranks in pairs
    ]
    seconds = timeout_of(scope, timeout)
    request = gang_service_pb2.FormRequest(
        endpoints=endpoints, groups=descriptions, timeout_ms=milliseconds(seconds)
    )
    return plain_call(scope, "form", request, formed_from_wire, timeout=seconds + MARGIN)
