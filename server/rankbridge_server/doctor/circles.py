"""Ranks that wait for each other in a circle; and ranks that have all come, and do not go on."""

from __future__ import annotations

from .absence import waits
from .evidence import Evidence
from .patience import patience
from .verdict import Kind, Side, Verdict
from .waits import Waiting, WaitsFor
from .words import called, group_name, rank_intervals


def circle(evidence: Evidence, graph: WaitsFor, patience_s: float) -> Verdict | None:
    """Order inversion: each rank of the circle is in a call for which another must come, which waits itself."""
    found = graph.cycle
    if not found:
        return None
    inside = set(found)
    lacking = [it for it in graph.waiting if it.rank in inside and inside & {*it.missing} - {it.rank}]
    if not all(graph.lasts(it, patience_s) for it in lacking):
        return None
    waiting = waits(evidence, graph)
    sites = {it.rank: it.site for it in waiting}
    sides = tuple(
        Side(
            ranks=(it.rank,),
            what=f"{called(it.call, evidence)}, which lacks {rank_intervals(sorted(inside & {*it.missing}))}",
            sites=tuple(site for site in (it.call.site or sites.get(it.rank),) if site),
        )
        for it in sorted(lacking, key=lambda it: it.rank)
    )
    groups = sorted({group_name(it.call.group, evidence) for it in lacking})
    return Verdict(
        kind=Kind.ORDER_INVERSION,
        summary=f"{rank_intervals(sorted(inside))} wait for each other in a circle, in {' and '.join(groups)}",
        confidence=0.95,
        culprits=(),
        cycle=found,
        call=called(lacking[0].call, evidence),
        sides=sides,
        waits=waiting,
        advice="call the collectives of these groups in the same order on every rank",
    )


def all_came(evidence: Evidence, graph: WaitsFor, patience_s: float) -> Verdict | None:
    """Every member has issued the same call, and it is not done."""
    ranks = {it.rank: it for it in evidence.ranks}

    def is_long(it: Waiting) -> bool:
        # A device computes as long as it does in each step.
        late = ranks[it.rank] if it.call.on_device else None
        return (it.seconds or 0) >= 2 * patience(evidence, late, patience_s)

    stuck = [
        it for it in graph.waiting if not it.missing and not it.unknown and not it.call.is_p2p and is_long(it)
    ]
    if not stuck or graph.edges:
        return None
    oldest = max(stuck, key=lambda it: it.seconds or 0.0)
    return Verdict(
        kind=Kind.UNKNOWN,
        summary=f"all members have called {called(oldest.call, evidence)}, alike in all that was recorded, and it has "
        f"not been done for {oldest.seconds or 0:.1f} s",
        confidence=0.5,
        call=called(oldest.call, evidence),
        waits=waits(evidence, graph),
        advice="reduce op and root are seen by `rankbridge watch`; look at the network between the ranks (`ss -tin`)",
    )
