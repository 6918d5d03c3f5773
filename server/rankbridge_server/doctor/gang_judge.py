"""The verdict on a gang: on what keeps its ranks waiting now, or on what has failed last."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from . import failures, gang_deaths
from .functions import left_behind
from .gang_evidence import evidence_of
from .judge import judge
from .patience import PATIENCE_S
from .testimony import Silence, Testimony
from .torch_evidence import torch_evidence
from .verdict import Kind, Verdict

_OPEN = (Kind.HEALTHY, Kind.UNKNOWN)


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
    if gang_deaths.is_over(testimonies):
        at = gang_deaths.last_sign(testimonies)
        evidence = evidence_of(testimonies, silences, world_size=world_size, at=at, interval_s=interval_s)
        verdict = (
            verdict
            or gang_deaths.ended_in_order(testimonies, world_size)
            or gang_deaths.died(evidence, testimonies, patience_s)
        )
    verdict = verdict or failures.over(testimonies)
    if verdict is None:
        evidence = evidence_of(testimonies, silences, world_size=world_size, at=at, interval_s=interval_s)
        verdict = judge(evidence, patience_s)
        of_torch = torch_evidence(evidence, testimonies, silences)
        if verdict.kind in _OPEN and of_torch is not None:
            found = judge(of_torch, patience_s)
            verdict = verdict if found.kind is Kind.HEALTHY else found
        if verdict.kind is Kind.HEALTHY:
            verdict = left_behind(evidence, testimonies, at, patience_s) or verdict
        verdict = failures.left_by_failure(testimonies, at, verdict) or verdict
    if verdict.kind is Kind.HEALTHY:
        verdict = failures.last(testimonies, at) or verdict
    return replace(verdict, world_size=world_size)
