"""A verdict for people: on one screen, however many ranks there are."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ..core.printable import printable
from .evidence import Frame
from .verdict import Kind, Verdict, Wait
from .words import joined, rank_intervals

MOST_CULPRITS = 5
MOST_ROWS = 8


def page(verdict: Verdict) -> str:
    """The verdict, its culprits, both sides, who waits, and what to do, each line printable."""
    parts = [[_headline(verdict)], _culprits(verdict), _sides(verdict), _waits(verdict)]
    if verdict.cycle:
        parts.append(
            ["circle: " + " waits for ".join(f"rank {it}" for it in (*verdict.cycle, verdict.cycle[0]))]
        )
    parts.append(_capped(verdict.evidence, "seen: "))
    parts.append([f"next: {verdict.advice}"] if verdict.advice else [])
    parts.append(_capped(verdict.notes, "note: "))
    return "\n".join(printable(line) for part in parts for line in part)


def _headline(verdict: Verdict) -> str:
    sure = (
        ""
        if verdict.confidence >= 0.9 or verdict.kind is Kind.UNKNOWN
        else f" ({verdict.confidence:.0%} sure)"
    )
    return f"{verdict.kind.value.upper()}: {verdict.summary}{sure}"


def _culprits(verdict: Verdict) -> list[str]:
    alike: dict[tuple[str, tuple[Frame, ...]], list[int]] = {}
    for it in verdict.culprits:
        alike.setdefault((it.condition.value, it.stack), []).append(it.rank)
    whys = {it.rank: it for it in verdict.culprits}
    lines = []
    for (_, stack), ranks in list(alike.items())[:MOST_CULPRITS]:
        one = whys[ranks[0]]
        pids = f" (pid {one.pid} on {one.host})" if len(ranks) == 1 and one.pid is not None else ""
        lines.append(f"cause: {rank_intervals(ranks)}{pids}: {one.why}")
        if stack:
            lines.append(f"       at {joined(stack)}")
    if len(alike) > MOST_CULPRITS:
        lines.append(f"       and {len(alike) - MOST_CULPRITS} more kinds of culprits (--json has all)")
    return lines


def _sides(verdict: Verdict) -> list[str]:
    lines = []
    for it in sorted(verdict.sides, key=lambda it: (len(it.ranks), it.ranks))[:MOST_ROWS]:
        at = f", at {joined(it.sites)}" if it.sites else ""
        lines.append(f"side:  {rank_intervals(it.ranks)}: {it.what}{at}")
    if len(verdict.sides) > MOST_ROWS:
        lines.append(f"       and {len(verdict.sides) - MOST_ROWS} more sides")
    return lines


def _waits(verdict: Verdict) -> list[str]:
    alike: dict[tuple[str, tuple[int, ...], Frame | None], list[Wait]] = {}
    for it in verdict.waits:
        alike.setdefault((it.call, it.waits_for, it.site), []).append(it)
    # Outliers first: what few ranks wait for says more than what most do.
    rows = sorted(alike.items(), key=lambda it: (len(it[1]), it[1][0].rank))
    lines = []
    for (call, for_ranks, site), them in rows[:MOST_ROWS]:
        seconds = [it.seconds for it in them if it.seconds is not None]
        since = f" for {min(seconds):.1f} s" if seconds else ""
        awaited = f", for {rank_intervals(for_ranks)}" if for_ranks else ""
        at = f", at {site}" if site else ""
        lines.append(f"waits: {rank_intervals([it.rank for it in them])} in {call}{since}{awaited}{at}")
    if len(rows) > MOST_ROWS:
        lines.append(f"       and {len(rows) - MOST_ROWS} more")
    return lines


def _capped(texts: Sequence[str] | Iterable[str], title: str) -> list[str]:
    every = list(texts)
    lines = [f"{title}{it}" for it in every[:MOST_ROWS]]
    return (
        [*lines, f"{' ' * len(title)}and {len(every) - MOST_ROWS} more"] if len(every) > MOST_ROWS else lines
    )
