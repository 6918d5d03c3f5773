"""Ranks that are in the same call and asked for different things."""

from __future__ import annotations

from collections import defaultdict

from .absence import culprit, waits
from .contracts import Mismatch, asked, mismatches, too_large
from .evidence import Call, Evidence, Frame, RankEvidence
from .order import swaps
from .verdict import Condition, Culprit, Kind, Side, Verdict
from .waits import WaitsFor
from .words import called, numbered, rank_intervals

_NAMES = {
    Kind.MISMATCH_KIND: "collective",
    Kind.MISMATCH_SHAPE: "size",
    Kind.MISMATCH_DTYPE: "dtype",
    Kind.MISMATCH_OP: "reduce op",
    Kind.MISMATCH_ROOT: "root",
}


def contracts(evidence: Evidence, graph: WaitsFor, patience_s: float) -> Verdict | None:
    """Members that disagree on what they must agree on."""
    found = mismatches(evidence)
    if not found:
        return None
    first = found[0]
    ranks = {it.rank: it for it in evidence.ranks}
    sides = tuple(_side(it) for it in first.sides)
    return Verdict(
        kind=first.kind,
        summary=f"in {numbered(first.group.name, first.number, evidence)}, the {_NAMES[first.kind]} differs: "
        + "; ".join(f"{rank_intervals(it.ranks)}: {it.what}" for it in sides),
        confidence=0.97,
        culprits=tuple(_aside(ranks[it], evidence, _site(first, it)) for it in first.minority),
        call=f"{first.sides[0][1][0][1].kind} {numbered(first.group.name, first.number, evidence)}",
        sides=sides,
        waits=waits(evidence, graph),
        advice="make the calls agree on every rank"
        + ("" if first.minority else "; neither side is a majority, so either may be the wrong one"),
    )


def sizes(evidence: Evidence, graph: WaitsFor, patience_s: float) -> Verdict | None:
    """A send that is larger than its receive."""
    found = too_large(evidence)
    if found is None:
        return None
    pair = sorted(((found.sender, found.send), (found.receiver, found.recv)), key=lambda it: it[0])
    return Verdict(
        kind=Kind.MISMATCH_SHAPE,
        summary=f"rank {found.sender} sends more than rank {found.receiver} receives: {asked(found.send)}; "
        f"{asked(found.recv)}",
        confidence=0.95,
        call=called(found.recv, evidence),
        sides=tuple(
            Side(ranks=(rank,), what=asked(call), sites=(call.site,) if call.site else ())
            for rank, call in pair
        ),
        waits=waits(evidence, graph),
        advice="make the tensors of the send and of the receive alike",
    )


def _site(mismatch: Mismatch, rank: int) -> Frame | None:
    return next(call.site for _, calls in mismatch.sides for it, call in calls if it == rank)


def _aside(rank: RankEvidence, evidence: Evidence, site: Frame | None) -> Culprit:
    made = culprit(rank, evidence)
    return Culprit(
        rank=made.rank,
        confidence=0.95,
        condition=Condition.IN_COLLECTIVE,
        pid=made.pid,
        host=made.host,
        why="asks for something else than most",
        # Where it was then, if that is known; it may have gone on.
        stack=(site,) if site is not None else made.stack,
    )


def _side(side: tuple[str, tuple[tuple[int, Call], ...]]) -> Side:
    what, calls = side
    sites = list(dict.fromkeys(site for _, it in calls if (site := it.site) is not None))
    return Side(ranks=tuple(sorted(rank for rank, _ in calls)), what=what, sites=tuple(sites[:3]))


def changed_order(evidence: Evidence, graph: WaitsFor, patience_s: float) -> Verdict | None:
    """Members that called the same from other lines, and the other way round soon after."""
    found = swaps(evidence)
    if found is None:
        return None
    ranks = {it.rank: it for it in evidence.ranks}
    less = found.swapped if 2 * len(found.others) > len(found.group.ranks) else ()
    name = numbered(found.group.name, found.number, evidence)
    return Verdict(
        kind=Kind.ORDER,
        summary=f"from {name} on, {rank_intervals(found.swapped)} called in another order than "
        f"{rank_intervals(found.others)}: values are wrong, without an error",
        confidence=0.85,
        culprits=tuple(_aside(ranks[it], evidence, found.there) for it in less),
        call=name,
        sides=(
            Side(
                ranks=found.others,
                what=f"first {found.here}, then {found.there}",
                sites=(found.here, found.there),
            ),
            Side(
                ranks=found.swapped,
                what=f"first {found.there}, then {found.here}",
                sites=(found.there, found.here),
            ),
        ),
        advice="call the collectives of a group in the same order on every rank",
    )


def membership(evidence: Evidence, graph: WaitsFor, patience_s: float) -> Verdict | None:
    """Members that know a group of one name with different members, while a call in it is pending."""
    waiting = {it.call.group for it in graph.waiting if (it.seconds or 0) >= patience_s}
    sides: dict[str, dict[tuple[int, ...], list[int]]] = defaultdict(lambda: defaultdict(list))
    for rank in evidence.ranks:
        for group in rank.groups:
            if group.name in waiting and rank.rank in group.ranks:
                sides[group.name][group.ranks].append(rank.rank)
    for name, by_members in sorted(sides.items()):
        overlapping = [
            it for it in by_members if any({*it} & {*other} for other in by_members if other != it)
        ]
        if overlapping:
            return Verdict(
                kind=Kind.MEMBERSHIP,
                summary=f"group {name!r} has different members on different ranks",
                confidence=0.9,
                call=name,
                sides=tuple(
                    Side(ranks=tuple(sorted(by_members[it])), what=f"members {list(it)}")
                    for it in sorted(overlapping)
                ),
                waits=waits(evidence, graph),
                advice="call new_group with the same ranks, in the same order, on every rank of the job",
            )
    return None
