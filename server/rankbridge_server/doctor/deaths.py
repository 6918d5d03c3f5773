"""Jobs that have ended: which rank ended by itself, and did not follow the others."""

from __future__ import annotations

import re

from .absence import culprit, waits
from .evidence import Evidence, RankEvidence
from .verdict import Condition, Kind, Verdict
from .waits import WaitsFor
from .words import called, rank_intervals

_FOLLOWS = re.compile(
    r"[Cc]onnection|[Tt]imed? ?out|gloo|nccl|NCCL|[Pp]eer|PEER_|[Ss]tore|DistNetworkError|DistBackendError"
    r"|GuardError|SignalException|KeyboardInterrupt|SystemExit"
)
"""Exceptions that others have caused: a member that is gone, or another call than the others', a timeout, a signal."""


def died(evidence: Evidence, graph: WaitsFor, patience_s: float) -> Verdict | None:
    """The ranks that ended on their own account while others waited for them, or after an exception of their own."""
    if not evidence.is_over or evidence.ended_by:
        return None
    first = (
        [it for it in evidence.ranks if _by_itself(it)]
        or _silent(evidence, graph)
        or _left_alone(evidence, graph)
    )
    lacking = [it for rank in first for it in graph.blocked_by(rank.rank)]
    if not first or not (lacking or any(it.process.reason for it in first)):
        return None
    numbers = [it.rank for it in first]
    culprits = tuple(culprit(it, evidence, 0.9) for it in first)
    oldest = max(lacking, key=lambda it: it.seconds or 0.0, default=None)
    name = called(oldest.call, evidence) if oldest else ""
    before = f" before {name}, which others had called" if name else ""
    site = first[0].calls[-1].site if first[0].calls else None
    return Verdict(
        kind=Kind.NEVER_CALLED,
        summary=f"{rank_intervals(numbers)} ended{before}: {culprits[0].why}"
        + (f"; the last call was at {site}" if site else ""),
        confidence=0.9,
        culprits=culprits,
        call=name,
        waits=waits(evidence, graph),
        advice="read its last output, and the kernel's log (`dmesg`) for the OOM killer"
        if culprits[0].condition is Condition.DEAD
        else "its loop had fewer steps than the others': make them equal, or use torch.distributed.algorithms.join",
    )


def _left_alone(evidence: Evidence, graph: WaitsFor) -> list[RankEvidence]:
    """The rank that asked for a status, where others waited for it alone, and followed it or were killed."""
    left = [it for it in evidence.ranks if _asked_for_status(it)]
    return left if [it.rank for it in left] == list(graph.sinks) else []


def ended(evidence: Evidence, graph: WaitsFor, patience_s: float) -> Verdict | None:
    """A job that is over as it should be."""
    if not evidence.is_over or len(evidence.ranks) < evidence.world_size:
        return None
    if any(it.process.exit_status != 0 for it in evidence.ranks):
        return None
    summary = "the job is over: every rank has exited normally"
    return Verdict(kind=Kind.HEALTHY, summary=summary, confidence=0.95)


def _asked_for_status(rank: RankEvidence) -> bool:
    """Whether it has ended by a status of its own, of which nobody knows whether another rank has caused it."""
    return rank.process.reason.startswith("SystemExit")


def _by_itself(rank: RankEvidence) -> bool:
    """Whether it raised what no other rank has caused."""
    return bool(rank.process.reason) and not _FOLLOWS.search(rank.process.reason)


def _silent(evidence: Evidence, graph: WaitsFor) -> list[RankEvidence]:
    """Ranks for which others waited, and that ended without an exception, where others ended with one that followed."""
    followed = {
        it.rank for it in evidence.ranks if _FOLLOWS.search(it.process.reason) and not _asked_for_status(it)
    }
    # Where signals ended several, who was first is not known.
    if 2 * len(followed) < len(evidence.ranks) or any(
        "Interrupt" in it.process.reason for it in evidence.ranks
    ):
        return []
    return [it for it in evidence.ranks if it.rank in graph.sinks] if followed.isdisjoint(graph.sinks) else []
