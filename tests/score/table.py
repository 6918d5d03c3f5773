"""The tables of docs/score.md."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence

from tests.score.score import Score

FAULTY = """| {} | cases | detected | kind | named | false blame | silent | hung | noise | p50 ms | max ms |
| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |"""
CORRECT = """| class | cases | false alarms | hung | p50 ms | max ms |
| --- | --- | --- | --- | --- | --- |"""


def faulty(by_class: Mapping[str, Sequence[Score]], what: str = "class") -> str:
    """A line for each class, or for each of what else the cases are counted by."""
    lines = [FAULTY.format(what)]
    for title, them in _with_all(by_class):
        numbers = [
            sum(it.detected for it in them),
            sum(it.kind for it in them),
            sum(it.named for it in them),
            sum(it.false_blame for it in them),
            sum(not it.detected for it in them),
            sum(it.hung for it in them),
            sum(it.noise for it in them),
        ]
        lines.append(_row(title, [len(them), *numbers, *_times(them)]))
    return "\n".join(lines)


def correct(by_class: Mapping[str, Sequence[Score]]) -> str:
    """A line for each class."""
    lines = [CORRECT]
    for title, them in _with_all(by_class):
        numbers = [len(them), sum(it.detected for it in them), sum(it.hung for it in them)]
        lines.append(_row(title, [*numbers, *_times(them)]))
    return "\n".join(lines)


def _with_all(by_class: Mapping[str, Sequence[Score]]) -> list[tuple[str, Sequence[Score]]]:
    every = [it for them in by_class.values() for it in them]
    return [*((it, them) for it, them in by_class.items() if them), *([("**all**", every)] if every else [])]


def _times(them: Sequence[Score]) -> list[int]:
    times = [it.seconds * 1000 for it in them]
    return [round(statistics.median(times)), round(max(times))]


def _row(title: str, numbers: Sequence[int]) -> str:
    return f"| {title} | {' | '.join(f'{it:,}' for it in numbers)} |"
