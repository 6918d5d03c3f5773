"""Verdicts on evidence of real runs, which `python -m tests.diagnose NAME --bundles` has recorded."""

from dataclasses import asdict

import pytest
from tests.diagnose.faults import Program
from tests.diagnose.plan import Plan
from tests.diagnose.recorded import recorded
from tests.diagnose.said import Said
from tests.diagnose.score import score
from tests.diagnose.variants import Variant

from rankbridge_server.doctor.evidence import Evidence
from rankbridge_server.doctor.judge import judge

KEPT = list(recorded())


def test_there_is_evidence() -> None:
    assert len(KEPT) > 20


@pytest.mark.parametrize(
    ("program", "variant", "seed", "evidence"), KEPT, ids=[f"{it[0].name}-{it[1]}" for it in KEPT]
)
def test_the_verdict_is_right(program: Program, variant: Variant, seed: int, evidence: Evidence) -> None:
    said = Said.by_doctor(asdict(judge(evidence)))
    found = score(program, Plan.drawn(program.name, seed), said, 0.0)
    assert (found.detected, found.right_kind, found.exact, found.false_blame) == (True, True, True, False)
