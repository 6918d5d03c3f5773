"""Ranks in words for people."""

from __future__ import annotations

from collections.abc import Sequence

MOST_SHOWN = 8
"""A gang may have a thousand ranks."""


def rank_intervals(ranks: Sequence[int]) -> str:
    """Names ranks, consecutive ones as an interval: "ranks 0-2, 5"."""
    runs: list[tuple[int, int]] = []
    for rank in sorted(ranks):
        if runs and rank == runs[-1][1] + 1:
            runs[-1] = (runs[-1][0], rank)
        else:
            runs.append((rank, rank))
    shown = ", ".join(str(first) if first == last else f"{first}-{last}" for first, last in runs[:MOST_SHOWN])
    rest = sum(last - first + 1 for first, last in runs[MOST_SHOWN:])
    return f"rank{'s' if len(ranks) != 1 else ''} {shown or 'none'}" + (f" and {rest} more" if rest else "")
