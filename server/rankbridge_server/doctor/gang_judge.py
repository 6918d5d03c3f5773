"""The verdict on a gang: on what keeps its ranks waiting now, or on what has failed last."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from . import failures
from .gang_evidence import evidence_of
from .judge import judge
from .patience import PATIENCE_S
from .testimony import Silence, Testimony
from .verdict import Kind, Verdict


def diagnose(
    testimonies: Sequence[Testimony],
    silences: Sequence[Silence],
    *,
    world_size: int,
    at: float,
    interval_s: float,
    patience_s: float = PATIENCE_S,
) -> Verdict:
    """The verdict. `testimonies`: of ranks that have answered, at least one; `silences`: of all others.

    `at`: now, in seconds since 1970; `interval_s`: between both looks at each process.
    """
    verdict = failures.loss(testimonies, silences)
    if verdict is None:
        evidence = evidence_of(testimonies, silences, world_size=world_size, at=at, interval_s=interval_s)
        verdict = judge(evidence, patience_s)
    if verdict.kind is Kind.HEALTHY:
        verdict = failures.last(testimonies, at) or verdict
    return replace(verdict, world_size=world_size)
