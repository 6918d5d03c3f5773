"""How right verdicts were: the table of `make diagnose`."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from tests.diagnose.run import Outcome

from rankbridge_server.doctor.verdict import Condition, Kind

_SIDED = {Kind.MISMATCH_ROOT, Kind.MISMATCH_KIND}


@dataclass(frozen=True)
class Score:
    """Of one run."""

    detected: bool
    right_kind: bool
    exact: bool
    false_blame: bool
    seconds: float


def score(it: Outcome) -> Score:
    """Compares a verdict with the truth."""
    program, verdict = it.program, it.verdict
    kind = Kind(verdict["kind"])
    blamed = {culprit["rank"] for culprit in verdict["culprits"]}
    conditions = {Condition(culprit["condition"]) for culprit in verdict["culprits"]}
    if program.is_right:
        said = kind not in (Kind.HEALTHY, Kind.UNKNOWN)
        return Score(kind is Kind.HEALTHY, kind is Kind.HEALTHY, not blamed, said or bool(blamed), it.seconds)
    shown = {*verdict["cycle"]} or {rank for side in verdict["sides"] for rank in side["ranks"]}
    wanted = program.involved(it.plan)
    # Without a majority, both sides must be shown, the wrong one by itself.
    alone = not blamed and kind in _SIDED and program.blamed(it.plan) in _sides(verdict)
    exact = alone or (
        blamed == program.blamed(it.plan) and (not wanted or wanted == shown or wanted in _sides(verdict))
    )
    right = kind in program.kinds and (
        not program.conditions or (bool(conditions) and conditions <= program.conditions)
    )
    detected = kind not in (Kind.HEALTHY, Kind.UNKNOWN)
    return Score(detected, right, exact, not blamed <= program.blamed(it.plan), it.seconds)


def _sides(verdict: dict[str, list[dict[str, list[int]]]]) -> list[set[int]]:
    return [set(side["ranks"]) for side in verdict["sides"]]


def row(title: str, scores: Sequence[Score]) -> str:
    """A line of the table, in Markdown."""
    count = len(scores)
    if not count:
        return f"| {title} | - | - | - | - | - | - |"
    times = [it.seconds for it in scores]
    cells = [
        f"{sum(it.detected for it in scores)}/{count}",
        f"{sum(it.right_kind for it in scores)}/{count}",
        f"{sum(it.exact for it in scores)}/{count}",
        str(sum(it.false_blame for it in scores)),
        f"{statistics.median(times):.2f}",
        f"{max(times):.2f}",
    ]
    return f"| {title} | {' | '.join(cells)} |"
