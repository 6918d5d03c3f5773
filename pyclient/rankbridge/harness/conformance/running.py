"""Runs the cases of the report on one backend."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from fnmatch import fnmatchcase

from rankbridge.harness.conformance.faults import faults
from rankbridge.harness.conformance.layouts import layouts
from rankbridge.harness.conformance.orders import orders
from rankbridge.harness.conformance.probe import Probe
from rankbridge.harness.conformance.values import values
from rankbridge.harness.conformance.verdicts import HANGS, NOT_RUN, verdict_of
from rankbridge.harness.gangs import Pool
from rankbridge.harness.running import Result, run_once

OPTIONS: Mapping[str, int] = {"data_timeout": 3, "heartbeat_misses": 10}
"""Of the gang. A hang costs as long as the backend may take; a rank that is stopped for a moment is not lost."""

MOST_HANGS = 3
"""After so many hangs of an operation in a part of the report, its other cases there are not run."""


def probes(patterns: Sequence[str] = ("*",)) -> list[Probe]:
    """Gives the cases whose names match any pattern of shells, in the order of the report."""
    every = [*values(), *layouts(), *orders(), *faults()]
    return [it for it in every if any(fnmatchcase(it.name, one) for one in patterns)]


def run_probes(chosen: Sequence[Probe], backend: str, pool: Pool) -> Iterator[Result]:
    """Runs cases in their order, and gives each result as it comes.

    Raises:
        NoGang: A gang did not start.
    """
    hung: Counter[tuple[str, str]] = Counter()
    for it in chosen:
        case = it.case(backend)
        if hung[it.part, it.operation] >= MOST_HANGS:
            result = Result(case.name, case.file, "skipped", case=case.name)
            result.reason = f"{it.operation} has hung in {MOST_HANGS} cases of this part before"
            verdict = NOT_RUN
        else:
            result = run_once(case, 0, pool, set(), OPTIONS)
            verdict = verdict_of(result)
            hung[it.part, it.operation] += verdict == HANGS
        result.labels = {"part": it.part, "operation": it.operation, "dtype": it.dtype, "verdict": verdict}
        yield result
