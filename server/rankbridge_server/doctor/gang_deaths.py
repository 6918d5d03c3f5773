"""Gangs whose ranks are all dead: which of them ended first, or had not come, as their records say."""

from __future__ import annotations

from collections.abc import Sequence

from .absence import waits
from .contract_texts import frame_of
from .evidence import Evidence
from .patience import patience
from .testimony import Operation, Testimony
from .verdict import Condition, Culprit, Kind, Verdict
from .waits import WaitsFor
from .words import called, rank_intervals, verb

_EARLY_S = 1.5
"""Ranks that end together write their last signs of life within less."""


def is_over(testimonies: Sequence[Testimony]) -> bool:
    """Whether every rank of which something is known is dead."""
    return all(it.is_gone for it in testimonies)


def last_sign(testimonies: Sequence[Testimony]) -> float:
    """When a rank of the gang ran last, in seconds since 1970."""
    return max((it.outside.alive_at for it in testimonies if it.outside is not None), default=0.0)


def ended_in_order(testimonies: Sequence[Testimony], world_size: int) -> Verdict | None:
    """Somebody ended all ranks in order."""
    if len(testimonies) < world_size or not all(it.outside and it.outside.in_order for it in testimonies):
        return None
    return Verdict(
        kind=Kind.HEALTHY, summary="the gang has ended in order: every rank was asked to", confidence=0.95
    )


def died(evidence: Evidence, testimonies: Sequence[Testimony], patience_s: float) -> Verdict:
    """The ranks that others waited for when the gang died. UNKNOWN, with what was seen, where records do not say."""
    graph = WaitsFor(evidence)
    at = evidence.at
    early = {it.rank for it in testimonies if it.outside and at - it.outside.alive_at > _EARLY_S}
    by_rank = {it.rank: it for it in testimonies}
    culprits = []
    longest = None
    for it in evidence.ranks:
        lacking = graph.blocked_by(it.rank)
        oldest = max(lacking, key=lambda one: one.seconds or 0.0, default=None)
        if oldest is None or it.rank not in by_rank or it.rank in graph.edges.keys() - early:
            continue
        is_long = (oldest.seconds or 0.0) >= patience(evidence, it, patience_s)
        if it.rank in early or is_long:
            culprits.append(_culprit(by_rank[it.rank], at, it.rank in early))
            longest = max((oldest, *([longest] if longest else ())), key=lambda one: one.seconds or 0.0)
    if not culprits or longest is None:
        return _unknown(evidence, graph, testimonies)
    numbers = [it.rank for it in culprits]
    name = called(longest.call, evidence)
    return Verdict(
        kind=Kind.NEVER_CALLED,
        summary=f"when the gang died, {rank_intervals(numbers)} had not called {name}, and "
        f"{verb(numbers, 'was', 'were')} {culprits[0].why}",
        confidence=0.8,
        culprits=tuple(culprits),
        call=name,
        waits=waits(evidence, graph),
        advice="read its last output, and the kernel's log (`dmesg`) for the OOM killer"
        if early
        else "look at what this rank's controller had called, and at who has ended the gang",
    )


def _culprit(it: Testimony, at: float, is_early: bool) -> Culprit:
    pending = [one for one in it.operations if one.done_at is None]
    if is_early and it.outside is not None:
        seconds = at - it.outside.alive_at
        condition = Condition.SILENT
        why = f"silent: its last sign of life, as it runs Python, was {seconds:.1f} s before the others'"
    elif pending:
        condition, why = Condition.UNKNOWN, _in(pending[0], at)
    else:
        condition, why = Condition.IDLE, "idle: it had no call"
    site = frame_of(pending[0].site) if pending else None
    return Culprit(
        rank=it.rank,
        confidence=0.8,
        condition=condition,
        pid=it.pid,
        host=it.host,
        why=why,
        stack=(site,) if site else (),
    )


def _unknown(evidence: Evidence, graph: WaitsFor, testimonies: Sequence[Testimony]) -> Verdict:
    seen = [_seen(it, evidence.at) for it in testimonies]
    lacking = sorted({*range(evidence.world_size)} - {it.rank for it in testimonies})
    if lacking:
        seen.append(f"{rank_intervals(lacking)}: no record")
    return Verdict(
        kind=Kind.UNKNOWN,
        summary="all ranks are dead, and their records do not say which was first",
        confidence=0.0,
        waits=waits(evidence, graph),
        evidence=tuple(seen),
        advice="read their last output, and the kernel's log (`dmesg`) for the OOM killer",
    )


def _seen(it: Testimony, at: float) -> str:
    pending = [one for one in it.operations if one.done_at is None]
    what = _in(pending[0], at) if pending else "without a call"
    if it.outside is None:
        return f"rank {it.rank}: {what}"
    how = "ended in order" if it.outside.in_order else "last sign of life"
    # Of whatever a bundle says.
    seconds = it.outside.alive_at % 86_400
    moment = f"{seconds // 3600:02.0f}:{seconds % 3600 // 60:02.0f}:{seconds % 60:06.3f}"
    over = f"; {it.over}" if it.over and not it.outside.in_order else ""
    return f"rank {it.rank}: {how} at {moment} UTC, {what}{over}"


def _in(it: Operation, at: float) -> str:
    name = f"function {it.function}" if it.function else it.kind
    where = f", from {it.site}" if it.site else ""
    return f"in {name} on {it.group} for {max(0.0, at - it.called_at):.1f} s{where}"
