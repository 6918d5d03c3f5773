"""Jobs in which nobody waits for long."""

from __future__ import annotations

from .absence import culprit, waits
from .conditions import condition, described
from .evidence import Evidence, RankEvidence
from .slowness import slowness
from .stacks import stack, waits_in_collective
from .verdict import Condition, Culprit, Kind, Verdict
from .waits import WaitsFor
from .words import joined, numbered, rank_intervals


def slow(evidence: Evidence, graph: WaitsFor, patience_s: float) -> Verdict | None:
    """One rank is last nearly always, and the others wait most of the time."""
    if max((it.seconds or 0.0 for it in graph.waiting), default=0.0) >= patience_s:
        return None
    found = slowness(evidence)
    if found is None:
        return None
    late = next(it for it in evidence.ranks if it.rank == found.rank)
    made = culprit(late, evidence, 0.9)
    why = f"last in {found.last} of {found.calls} calls, by {found.late_s:.2f} s on average"
    starved = (late.process.run_delay_s or 0) > evidence.interval_s / 2
    return Verdict(
        kind=Kind.SLOW,
        summary=f"the job moves; rank {found.rank} is {why}: the others wait {found.share:.0%} of the time",
        confidence=0.9,
        culprits=(
            Culprit(
                rank=made.rank,
                confidence=0.9,
                condition=Condition.STARVED if starved else made.condition,
                pid=made.pid,
                host=made.host,
                why=why,
                stack=made.stack,
            ),
        ),
        call=numbered(found.group, found.number, evidence),
        waits=waits(evidence, graph),
        advice="profile this rank (`py-spy record`): has it more work, a slower device or disk, or less CPU?",
    )


def steady(evidence: Evidence, graph: WaitsFor, patience_s: float) -> Verdict | None:
    """Everybody is there, and nobody has waited for long; or everybody moves."""
    if len(evidence.ranks) < evidence.world_size or any(
        it.is_gone or it.is_stopped or it.says == Condition.SILENT for it in evidence.ranks
    ):
        return None
    seconds = [it.seconds for it in graph.waiting]
    known = all(it.source for it in evidence.ranks)
    moving = all(_moves(it) for it in evidence.ranks)
    if known and all(it is not None and it < patience_s for it in seconds):
        idle = known and not any(map(waits_in_collective, evidence.ranks)) and not seconds
        summary = "no rank waits in a collective" if idle else "the job moves: no rank has waited for long"
        return Verdict(kind=Kind.HEALTHY, summary=summary, confidence=0.95, waits=waits(evidence, graph))
    if moving:
        return Verdict(kind=Kind.HEALTHY, summary="every rank moved between both looks", confidence=0.8)
    return None


def _moves(it: RankEvidence) -> bool:
    return it.still is False or bool(it.process.switches) or (it.process.state == "R")


def unknown(evidence: Evidence, graph: WaitsFor) -> Verdict:
    """What was seen, without a verdict."""
    seen = []
    for it in evidence.ranks:
        where = joined(stack(it)[:3])
        seen.append(
            f"rank {it.rank}: {described(it, condition(it, evidence.interval_s))}"
            + (f", in {where}" if where else "")
        )
    lost = sorted({*range(evidence.world_size)} - {it.rank for it in evidence.ranks})
    if lost:
        seen.append(f"{rank_intervals(lost)}: not found on this host")
    return Verdict(
        kind=Kind.UNKNOWN,
        summary="nothing is certain",
        confidence=0.0,
        waits=waits(evidence, graph),
        evidence=tuple(seen),
        advice="look again in some seconds; `rankbridge watch` records more than a job that nobody prepared",
    )
