"""Jobs that do not begin."""

from __future__ import annotations

from .absence import culprit
from .evidence import Evidence
from .patience import BEGINNING
from .stacks import in_init, site
from .verdict import Kind, Side, Verdict, Wait
from .waits import WaitsFor
from .words import joined, rank_intervals, verb


def wrong_environment(evidence: Evidence, graph: WaitsFor, patience_s: float) -> Verdict | None:
    """Ranks that were started with another number of ranks, or another address to meet at."""
    waiting = [it for it in evidence.ranks if in_init(it) and it.still]
    if not waiting:
        return None
    for name in ("WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"):
        sides: dict[str, list[int]] = {}
        for it in evidence.ranks:
            if name in it.environment:
                sides.setdefault(it.environment[name], []).append(it.rank)
        if len(sides) > 1:
            return Verdict(
                kind=Kind.RENDEZVOUS,
                summary=f"{name} differs: "
                + "; ".join(f"{rank_intervals(ranks)}: {value}" for value, ranks in sorted(sides.items())),
                confidence=0.95,
                sides=tuple(
                    Side(ranks=tuple(sorted(ranks)), what=f"{name}={value}")
                    for value, ranks in sorted(sides.items())
                ),
                waits=_waits(evidence),
                advice=f"start every rank with the same {name}",
            )
    return None


def not_begun(evidence: Evidence, graph: WaitsFor, patience_s: float) -> Verdict | None:
    """Ranks that wait in init_process_group for others that are not in it."""
    waiting = [it for it in evidence.ranks if in_init(it) and it.still]
    if max((it.process.blocked_s or 0.0 for it in waiting), default=0.0) < BEGINNING * patience_s:
        return None
    # Jobs begin slowly: a rank that moves, or has not been at one place for long, may be on its way.
    long = BEGINNING * patience_s
    late = [
        it
        for it in evidence.ranks
        if not in_init(it)
        and (it.is_gone or (it.begun is False and it.still and (it.process.blocked_s or 0) >= long))
    ]
    if not late:
        return None
    culprits = tuple(culprit(it, evidence, 0.9) for it in late)
    numbers = [it.rank for it in culprits]
    return Verdict(
        kind=Kind.RENDEZVOUS,
        summary=f"{rank_intervals(numbers)} {verb(numbers, 'is', 'are')} not in init_process_group, where others wait: "
        f"{culprits[0].why}" + (f", in {joined(culprits[0].stack[:3])}" if culprits[0].stack else ""),
        confidence=0.9,
        culprits=culprits,
        call="init_process_group",
        waits=_waits(evidence),
        advice="look at the stack of the rank that has not come",
    )


def _waits(evidence: Evidence) -> tuple[Wait, ...]:
    return tuple(
        Wait(
            rank=it.rank, call="init_process_group", waits_for=(), seconds=it.process.blocked_s, site=site(it)
        )
        for it in evidence.ranks
        if in_init(it)
    )
