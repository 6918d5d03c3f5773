"""`rankbridge doctor` on real jobs: some of `make diagnose`, and what cannot be judged."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.diagnose.faults import FAULTS, RIGHT, Program
from tests.diagnose.recorded import EVIDENCE
from tests.diagnose.run import diagnose
from tests.diagnose.score import score
from tests.support.sampling import sample, seed

BIN = Path(sys.executable).parent
WRONG = [(it, job) for it in FAULTS for job in ("unprepared", "watched") if job == "watched" or it.unprepared]
SOUND = [(it, job) for it in RIGHT for job in ("unprepared", "watched")]
DRAWN = [*sample(WRONG, 2), *sample(SOUND, 1)]


def doctor(*arguments: str, **settings: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [str(BIN / "rankbridge"), "doctor", *arguments],
        env={**os.environ, **settings},
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )


@pytest.mark.slow
@pytest.mark.parametrize(("program", "job"), DRAWN, ids=[f"{it.name}-{job}" for it, job in DRAWN])
def test_the_fault_is_named_and_nobody_is_blamed_falsely(program: Program, job: str) -> None:
    outcome = diagnose(program, int(seed()[:6], 16) if seed() != "none" else 0, job == "watched")
    found = score(outcome)
    assert not found.false_blame, outcome.page
    assert (found.detected, found.right_kind, found.exact) == (True, True, True), outcome.page
    assert found.seconds < 30


def test_a_process_that_is_no_rank_is_refused() -> None:
    answer = doctor(str(os.getpid()))
    assert answer.returncode == 2
    assert f"process {os.getpid()} is no rank" in answer.stderr


def test_a_process_that_is_not_there_is_refused() -> None:
    assert "there is no process 99999999" in doctor("99999999").stderr


def test_a_folder_without_records_is_refused(tmp_path: Path) -> None:
    answer = doctor(str(tmp_path))
    assert answer.returncode == 2
    assert "has neither records of `rankbridge watch` nor dumps" in answer.stderr


def test_a_bundle_is_judged_elsewhere_with_the_same_verdict(tmp_path: Path) -> None:
    bundle = EVIDENCE / "asleep-unprepared-7.json"
    first = doctor("--read", str(bundle), "--bundle", str(tmp_path / "again"))
    assert first.returncode == 1
    assert "NEVER_CALLED: rank 1" in first.stdout
    assert doctor("--read", str(tmp_path / "again")).stdout == first.stdout


def test_a_bundle_that_is_cut_off_is_refused(tmp_path: Path) -> None:
    (tmp_path / "cut").write_text((EVIDENCE / "asleep-unprepared-7.json").read_text()[:-100])
    answer = doctor("--read", str(tmp_path / "cut"))
    assert answer.returncode == 2
    assert "cut off" in answer.stderr
