"""The tables of what torch's own tools say, with the doctor beside them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from tests.diagnose.faults import Program
from tests.diagnose.rivals.tools import Tool
from tests.diagnose.score import Score, cells

Scores = Sequence[tuple[Program, Sequence[Mapping[Tool, Score]]]]
_SUMS = """| tool | runs | detected | kind right | ranks exact | false blame | p50 s | max s | false alarms |
| --- | --- | --- | --- | --- | --- | --- | --- | --- |"""


def tables(scores: Scores) -> str:
    """The sums, then each program."""
    lines = [_SUMS]
    for tool in Tool:
        wrong = [it[tool] for program, runs in scores for it in runs if not program.is_right]
        right = [it[tool] for program, runs in scores for it in runs if program.is_right]
        alarms = f"{sum(it.false_blame for it in right)}/{len(right)}"
        lines.append(f"| {tool} | {len(wrong)} | {' | '.join(cells(wrong))} | {alarms} |")
    lines += ["", f"| program | {' | '.join(Tool)} |", "| --- " * (len(Tool) + 1) + "|"]
    for program, runs in scores:
        outcomes = (_outcomes(program, [it[tool] for it in runs]) for tool in Tool)
        lines.append(f"| {program.what} | {' | '.join(outcomes)} |")
    return "\n".join(lines)


def _outcomes(program: Program, scores: Sequence[Score]) -> str:
    found = Counter(_words(program, it) for it in scores)
    if len(found) == 1:
        return next(iter(found), "-")
    return ", ".join(f"{count} {words}" for words, count in found.most_common())


def _words(program: Program, it: Score) -> str:
    if program.is_right:
        return "**a false alarm**" if it.false_blame else "nothing"
    if it.false_blame:
        return "**blames others**"
    if it.exact and it.right_kind:
        return "kind and ranks"
    if it.exact and it.detected:
        return "ranks"
    if it.right_kind:
        return "kind"
    return "an error" if it.detected else "nothing"
