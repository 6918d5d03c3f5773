"""What the doctor says of jobs on NCCL, where calls return before they are done, and a rank waits for its device."""

from __future__ import annotations

import pytest
from tests.diagnose.faults import PROGRAMS
from tests.diagnose.plan import Plan
from tests.diagnose.run import diagnose
from tests.diagnose.said import Said
from tests.diagnose.score import score
from tests.diagnose.variants import Variant

pytestmark = pytest.mark.gpu

JOBS = [Variant.UNPREPARED, Variant.WATCHED]


@pytest.fixture(autouse=True)
def on_nccl(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DIAGNOSE_BACKEND", "nccl")


@pytest.mark.parametrize("variant", JOBS, ids=str)
@pytest.mark.parametrize("name", ["asleep", "endless_loop", "stopped", "two_asleep", "fast", "training"])
def test_who_does_not_come_is_named_and_nobody_else(name: str, variant: Variant) -> None:
    program = PROGRAMS[name]
    outcome = diagnose(program, 0, variant)
    scored = score(program, Plan.drawn(name, 0), Said.by_doctor(outcome.verdict), outcome.seconds)
    assert not scored.false_blame, outcome.text
    assert (scored.detected, scored.right_kind, scored.exact) == (True, True, True), outcome.text
