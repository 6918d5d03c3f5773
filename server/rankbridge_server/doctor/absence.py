"""Ranks that others wait for and that wait for nobody."""

from __future__ import annotations

from collections import defaultdict

from .conditions import condition, described
from .contracts import asked
from .evidence import Evidence, RankEvidence
from .patience import patience
from .stacks import site, stack
from .verdict import Condition, Culprit, Kind, Side, Verdict, Wait
from .waits import Waiting, WaitsFor
from .words import called, joined, rank_intervals, verb

_SURE = {Condition.STOPPED: 0.99, Condition.DEAD: 0.99, Condition.EXITED: 0.99, Condition.SPINNING: 0.8}


def unmatched(evidence: Evidence, graph: WaitsFor, patience_s: float) -> Verdict | None:
    """A send and a receive between the same ranks that do not meet: another tag, or another peer."""
    p2p = [it for it in graph.waiting if it.call.is_p2p and it.missing and graph.lasts(it, patience_s)]
    by_rank = defaultdict(list)
    for it in p2p:
        by_rank[it.rank].append(it)
    for mine in p2p:
        for theirs in by_rank.get(mine.call.peer if mine.call.peer is not None else -1, ()):
            meant = theirs.call.peer == mine.rank and theirs.call.kind == mine.call.answer
            if meant and theirs.call.tag != mine.call.tag:
                return _pair(evidence, graph, mine, theirs, "tags differ")
    for mine in p2p:
        if mine.call.is_send:
            continue
        for theirs in p2p:
            elsewhere = theirs.call.is_send and theirs.rank == mine.call.peer
            if elsewhere and theirs.call.peer != mine.rank:
                return _pair(evidence, graph, mine, theirs, "the send goes to another rank")
    for mine in p2p:
        for theirs in by_rank.get(mine.call.peer if mine.call.peer is not None else -1, ()):
            if theirs.call.peer == mine.rank and theirs.call.kind == mine.call.kind and not mine.call.is_send:
                return _pair(evidence, graph, mine, theirs, "both receive, and nobody has sent")
    return None


def _pair(evidence: Evidence, graph: WaitsFor, mine: Waiting, theirs: Waiting, why: str) -> Verdict:
    first, second = sorted((mine, theirs), key=lambda it: it.rank)
    sides = tuple(
        Side(ranks=(it.rank,), what=asked(it.call), sites=(it.call.site,) if it.call.site else ())
        for it in (first, second)
    )
    return Verdict(
        kind=Kind.P2P_UNMATCHED,
        summary=f"ranks {first.rank} and {second.rank} wait for each other, and their calls do not meet: {why}",
        confidence=0.95,
        call=called(mine.call, evidence),
        sides=sides,
        culprits=(),
        waits=waits(evidence, graph),
        advice="make peer and tag of the send and of the receive agree",
    )


def absent(evidence: Evidence, graph: WaitsFor, patience_s: float) -> Verdict | None:
    """The ranks that are waited for, and wait for nobody."""
    ranks = {it.rank: it for it in evidence.ranks}
    found: list[tuple[RankEvidence, Waiting]] = []
    for rank in graph.sinks:
        lacking = graph.blocked_by(rank)
        oldest = max(lacking, key=lambda it: it.seconds or 0.0)
        late = ranks.get(rank)
        if late is None or (oldest.seconds or 0.0) < patience(evidence, late, patience_s):
            continue
        # It is in a collective of which nothing is known: it may wait itself.
        if condition(late, evidence.interval_s) is Condition.IN_COLLECTIVE:
            continue
        found.append((late, oldest))
    if not found:
        return None
    culprits = tuple(culprit(late, evidence) for late, _ in found)
    _, oldest = max(found, key=lambda it: it[1].seconds or 0.0)
    name = called(oldest.call, evidence)
    lacks = called(oldest.call.counterpart(oldest.rank), evidence) if oldest.call.is_p2p else name
    numbers = [it.rank for it in culprits]
    return Verdict(
        kind=Kind.NEVER_CALLED,
        summary=f"{rank_intervals(numbers)} {verb(numbers, 'has', 'have')} not called {lacks}, "
        f"{verb(numbers, 'is', 'are')} {culprits[0].why}" + _where(culprits[0]),
        confidence=min(it.confidence for it in culprits),
        culprits=culprits,
        call=name,
        waits=waits(evidence, graph),
        advice=_ADVICE.get(culprits[0].condition, "look at the stack of the rank that has not come"),
    )


def culprit(late: RankEvidence, evidence: Evidence, confidence: float = 0.95) -> Culprit:
    """A rank with what it does, in words."""
    what = condition(late, evidence.interval_s)
    return Culprit(
        rank=late.rank,
        confidence=min(confidence, _SURE.get(what, confidence)),
        condition=what,
        pid=late.pid,
        host=late.host,
        why=described(late, what),
        stack=stack(late),
    )


def _where(it: Culprit) -> str:
    return f", in {joined(it.stack[:3])}" if it.stack else ""


def waits(evidence: Evidence, graph: WaitsFor) -> tuple[Wait, ...]:
    """What each waiting rank waits for, those first that have waited longest."""
    ranks = {it.rank: it for it in evidence.ranks}
    longest: dict[int, Waiting] = {}
    for it in graph.waiting:
        known = longest.get(it.rank)
        if known is None or (it.seconds or 0) > (known.seconds or 0):
            longest[it.rank] = it
    found = [
        Wait(
            rank=it.rank,
            call=called(it.call, evidence),
            waits_for=tuple(sorted({*it.missing} - {it.rank})),
            seconds=it.seconds,
            site=it.call.site or site(ranks[it.rank]),
        )
        for it in longest.values()
    ]
    return tuple(sorted(found, key=lambda it: (-(it.seconds or 0), it.rank)))


_ADVICE = {
    Condition.ASLEEP: "look at the line where it sleeps: what does it wait for?",
    Condition.SPINNING: "look at the loop: is it endless, or has this rank more work than the others?",
    Condition.BLOCKED_READ: "find who should have written what it reads: a pipe, a socket, a loader, a disk",
    Condition.LOCK: "look at all stacks of this rank (`--json`): which thread has the lock that it waits for?",
    Condition.GIL_HELD: "a call into C sleeps and holds Python's lock: it must release it (ctypes.CDLL, not PyDLL)",
    Condition.STOPPED: "`kill -CONT` lets it go on, unless a debugger holds it",
    Condition.DEAD: "read its last output, and the kernel's log (`dmesg`) for the OOM killer; start the job again",
    Condition.EXITED: "its loop had fewer steps than the others': make them equal, or use "
    "torch.distributed.algorithms.join",
    Condition.TEARDOWN: "its loop had fewer steps than the others', or an exception was swallowed: read its output",
    Condition.WAITING_FOR_CHILD: "look at the process that it started (`ps --ppid`)",
    Condition.IDLE: "its controller has called something else, or nothing: look at its side, and at the record",
    Condition.HELD: "its debugger (`rankbridge break`) lets it go on: `continue`",
    Condition.SILENT: "look at its process: does a thread hold Python's lock, or has it no CPU?",
    Condition.STARVED: "give it CPU: too many processes or threads, or a limit of its cgroup",
}
