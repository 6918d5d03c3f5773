"""How right verdicts were: the table of `make diagnose`."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from tests.diagnose.faults import Program
from tests.diagnose.plan import Plan
from tests.diagnose.said import Said

from rankbridge_server.doctor.verdict import Kind

_SIDED = {Kind.MISMATCH_ROOT, Kind.MISMATCH_KIND}


@dataclass(frozen=True)
class Score:
    """Of one run."""

    detected: bool
    right_kind: bool
    exact: bool
    false_blame: bool
    seconds: float


def score(program: Program, plan: Plan, said: Said, seconds: float) -> Score:
    """Compares what was said with the truth."""
    blamed = {*said.blamed}
    if program.is_right:
        is_fine = said.kind is Kind.HEALTHY
        blames = bool(blamed) or (said.detected and not is_fine)
        return Score(is_fine, is_fine, not blamed, blames, seconds)
    shown = set().union(*said.sides)
    wanted = program.involved(plan)
    # Without a majority, both sides must be shown, the wrong one by itself.
    alone = not blamed and said.kind in _SIDED and program.blamed(plan) in said.sides
    exact = alone or (
        blamed == program.blamed(plan) and (not wanted or wanted == shown or wanted in said.sides)
    )
    right = said.kind in program.kinds and (
        not program.conditions or (bool(said.conditions) and said.conditions <= program.conditions)
    )
    return Score(said.detected, right, exact, not blamed <= program.blamed(plan), seconds)


def row(title: str, scores: Sequence[Score]) -> str:
    """A line of the table, in Markdown."""
    return f"| {title} | {' | '.join(cells(scores))} |"


def cells(scores: Sequence[Score]) -> list[str]:
    """Detected, kind right, ranks exact, false blame, median and longest time."""
    count = len(scores)
    if not count:
        return ["-"] * 6
    times = [it.seconds for it in scores]
    return [
        f"{sum(it.detected for it in scores)}/{count}",
        f"{sum(it.right_kind for it in scores)}/{count}",
        f"{sum(it.exact for it in scores)}/{count}",
        str(sum(it.false_blame for it in scores)),
        f"{statistics.median(times):.2f}",
        f"{max(times):.2f}",
    ]
