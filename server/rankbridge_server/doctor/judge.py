"""The rules, in the order in which they are asked. docs/decisions/0060-verdicts.md has the reasons."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from . import absence, circles, deaths, disagreements, rendezvous, stacks_alone, steadiness
from .evidence import Evidence
from .patience import PATIENCE_S
from .verdict import Verdict
from .waits import WaitsFor

Rule = Callable[[Evidence, WaitsFor, float], Verdict | None]

RULES: tuple[Rule, ...] = (
    rendezvous.wrong_environment,
    disagreements.membership,
    disagreements.contracts,
    disagreements.sizes,
    disagreements.changed_order,
    deaths.died,
    deaths.ended,
    absence.unmatched,
    absence.absent,
    circles.circle,
    rendezvous.not_begun,
    stacks_alone.outsider,
    circles.all_came,
    steadiness.slow,
    steadiness.steady,
)


def judge(evidence: Evidence, patience_s: float = PATIENCE_S) -> Verdict:
    """The verdict of the first rule that has one; UNKNOWN, with what was seen, if none has."""
    graph = WaitsFor(evidence)
    found = next((it for rule in RULES if (it := rule(evidence, graph, patience_s)) is not None), None)
    verdict = found or steadiness.unknown(evidence, graph)
    return replace(verdict, notes=(*verdict.notes, *evidence.notes), world_size=evidence.world_size)
