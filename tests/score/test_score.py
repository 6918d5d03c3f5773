"""Some of the labelled cases on real ranks, and what the score makes of right and wrong errors."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace

import pytest
from tests.score import table
from tests.score.labelled import SHORT_MS, SIZE, Json, Labelled, Truth, disagreement, missing
from tests.score.order import ORDERS, in_order
from tests.score.plan import plan, titles
from tests.score.run import Outcome, run
from tests.score.score import score
from tests.support.sampling import sample, seed

from rankbridge import RankBridgeError, RankDetail
from rankbridge.errors import ErrorCode
from rankbridge.harness.gangs import Pool, RunningGang, Wanted

CASES = plan(int(seed(), 16) if seed() != "none" else 1, "gloo")
# On a busy machine all that come must have come by then, or more of them are missing than the label says.
PATIENT_MS = 4_000


@pytest.fixture(scope="module")
def gang(quick_gangs: None) -> Iterator[RunningGang]:
    """Four ranks on Gloo."""
    with Pool() as pool:
        yield pool.gang(Wanted(4, "gloo"))


@pytest.mark.parametrize("case", sample(CASES, 6), ids=lambda it: it.name)
def test_errors_are_as_the_label_says(case: Labelled, gang: RunningGang) -> None:
    case = patient(case)
    outcome = run(case, gang)
    found = score(case, outcome)
    assert found.good, {rank: list(map(str, it)) for rank, it in outcome.errors.items()}
    assert outcome.afterwards == 0


def patient(case: Labelled) -> Labelled:
    """The same case; its callers wait longer for those that never come."""
    if case.step.get("timeout_ms") != SHORT_MS:
        return case
    return replace(case, step={**case.step, "timeout_ms": PATIENT_MS})


def test_a_seed_draws_the_same_cases_and_another_one_others() -> None:
    assert plan(5, "gloo") == plan(5, "gloo") != plan(6, "gloo")
    assert {it.kind for it in CASES} == set(titles())
    assert len(plan(1, "fake")) > 300
    assert sum(it.truth is not None for it in CASES) > 200


def test_who_comes_first_comes_alone_and_everybody_comes_once() -> None:
    for case in CASES:
        parts = list(in_order(case.step, case.first))
        assert sorted(callers(parts, case)) == sorted(callers([case.step], case))
        if case.first:
            assert {rank for rank, _ in callers(parts[:1], case)} == case.first
    counts = Counter(it.order for it in CASES)
    assert min(counts[it] for it in ORDERS) > 40, counts


def callers(steps: Sequence[Json], case: Labelled) -> list[tuple[int, str]]:
    """Which ranks call, and what, in order."""
    called = []
    for step in steps:
        members = case.groups.get(step.get("group", ""), range(SIZE))
        alike = [{"rank": it, "call": step["call"]} for it in members] if "call" in step else []
        each = [it for it in step.get("each", alike) if it["rank"] not in step.get("absent", ())]
        called += [(it["rank"], it["call"]) for it in each]
    return called


def error(code: ErrorCode, *named: tuple[int, str, str]) -> RankBridgeError:
    details = [
        RankDetail(rank=rank, rank_in_group=rank, state=state, detail=text) for rank, state, text in named
    ]
    made = RankBridgeError("it", ranks=details)
    made.code = code
    return made


def labelled(truth: Truth | None) -> Labelled:
    return Labelled("a class", "a class 0", {}, truth, {})


def sides(*odd: int) -> RankBridgeError:
    details = [(it, "disagrees", "max" if it in odd else "sum") for it in range(4)]
    return error(ErrorCode.MISMATCH, *details)


def test_a_mismatch_is_exact_with_both_sides_and_blames_with_others_mixed() -> None:
    case = labelled(disagreement(range(4), [1]))
    right = score(case, Outcome({it: [sides(1)] for it in range(4)}, 0.5))
    assert (right.good, right.noise, right.seconds) == (True, 0, 0.5)
    mixed = score(case, Outcome({it: [sides(1, 2)] for it in range(4)}))
    assert (mixed.kind, mixed.named, mixed.false_blame) == (True, False, True)
    silent = score(case, Outcome())
    assert (silent.good, silent.detected, silent.false_blame) == (False, False, False)
    partly = score(case, Outcome({0: [sides(1)], 1: [sides(1)]}))
    assert (partly.detected, partly.kind, partly.named) == (True, False, False)


def test_who_is_missing_must_be_named_and_nobody_else() -> None:
    case = labelled(missing({0: {2}, 1: {2}}))
    exact, other = (error(ErrorCode.PEER_MISSING, (it, "missing", "")) for it in (2, 3))
    nobody, lost = error(ErrorCode.PEER_MISSING), error(ErrorCode.PEER_LOST, (2, "lost", ""))
    assert score(case, Outcome({0: [exact], 1: [exact]})).good
    blamed = score(case, Outcome({0: [exact], 1: [other]}))
    assert (blamed.named, blamed.false_blame) == (False, True)
    unnamed = score(case, Outcome({0: [exact], 1: [nobody]}))
    assert (unnamed.kind, unnamed.named, unnamed.false_blame) == (True, False, False)
    unkind = score(case, Outcome({0: [exact], 1: [lost]}))
    assert (unkind.kind, unkind.named) == (False, True)
    noisy = score(case, Outcome({0: [exact, nobody], 1: [exact], 3: [nobody]}, afterwards=2))
    assert (noisy.good, noisy.noise) == (True, 4)
    assert not score(case, Outcome({0: [exact], 1: [exact]}, hung=True)).good


def test_of_a_correct_case_every_error_is_a_false_alarm() -> None:
    fine, alarm = (score(labelled(None), it) for it in (Outcome(), Outcome({1: [error(ErrorCode.INTERNAL)]})))
    assert (fine.good, fine.detected, alarm.good, alarm.detected) == (True, False, False, True)
    shown = table.correct({"it": [fine, alarm]}).splitlines()
    assert shown[2:] == ["| it | 2 | 1 | 0 | 0 | 0 |", "| **all** | 2 | 1 | 0 | 0 | 0 |"]
