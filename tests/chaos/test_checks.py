"""The checks of chaos find what is forged."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from tests.chaos.checks import Allowed, Called, Ended, judge
from tests.chaos.findings import Findings

from rankbridge import ErrorCode, MismatchError, PeerLostError, RankDetail, UnavailableError

BEFORE = np.array([1, 2], np.float32)
AFTER = np.array([3, 4], np.float32)
CALLED = Called(BEFORE, AFTER, in_place=False)
IN_PLACE = Called(BEFORE, AFTER, in_place=True)
LOST = Allowed(frozenset({ErrorCode.PEER_LOST}), frozenset({1}))
MUST = Allowed(frozenset())
GOOD = Ended(None, AFTER, BEFORE)


def lost(rank: int, indefinite: bool = True) -> PeerLostError:
    details = [RankDetail(rank=rank, rank_in_group=rank, state="lost")]
    return PeerLostError("a rank is lost", indefinite=indefinite, ranks=details)


def judged(called: Called, ended: dict[int, Ended], allowed: Allowed) -> Findings:
    findings = Findings()
    judge(findings, dict.fromkeys(ended, called), ended, dict.fromkeys(ended, allowed))
    return findings


def test_a_right_result_is_not_found() -> None:
    assert judged(CALLED, {0: GOOD, 1: GOOD}, MUST).held
    assert judged(IN_PLACE, {0: Ended(None, AFTER, AFTER)}, MUST).held


@pytest.mark.parametrize(
    "result", [None, BEFORE, AFTER[:1], AFTER.astype(np.float64), AFTER + np.float32(1e-6)]
)
def test_a_forged_result_is_found(result: np.typing.NDArray[np.float32] | None) -> None:
    findings = judged(CALLED, {0: GOOD, 1: replace(GOOD, result=result)}, MUST)
    assert len(findings.wrong) == 1
    assert "rank 1" in findings.wrong[0]
    assert not findings.held


def test_a_tensor_that_changed_though_its_operation_failed_is_found() -> None:
    findings = judged(IN_PLACE, {0: Ended(lost(1), None, AFTER)}, LOST)
    assert len(findings.wrong) == 1


def test_a_tensor_that_did_not_change_though_its_operation_succeeded_is_found() -> None:
    assert len(judged(IN_PLACE, {0: Ended(None, AFTER, BEFORE)}, MUST).wrong) == 1


def test_an_error_of_another_code_is_found() -> None:
    assert not judged(CALLED, {0: Ended(lost(1), None, BEFORE)}, LOST).errors
    assert judged(CALLED, {0: Ended(MismatchError("no"), None, BEFORE)}, LOST).errors
    assert judged(CALLED, {0: Ended(UnavailableError("no"), None, BEFORE)}, LOST).errors


def test_an_error_that_names_another_rank_is_found() -> None:
    assert judged(CALLED, {0: Ended(lost(2), None, BEFORE)}, LOST).errors
    assert judged(CALLED, {0: Ended(PeerLostError("somebody"), None, BEFORE)}, LOST).errors


def test_a_success_that_cannot_be_is_found() -> None:
    assert judged(CALLED, {0: GOOD}, replace(LOST, success=False)).errors


def test_a_failure_that_must_be_definite_is_found() -> None:
    definite = replace(LOST, definite=True)
    assert judged(CALLED, {0: Ended(lost(1), None, BEFORE)}, definite).errors
    assert not judged(CALLED, {0: Ended(lost(1, indefinite=False), None, BEFORE)}, definite).errors


def test_an_error_that_denies_what_another_rank_did_is_found() -> None:
    denied = Ended(lost(1, indefinite=False), None, BEFORE)
    assert judged(CALLED, {0: GOOD, 2: denied}, LOST).errors
    assert not judged(CALLED, {0: denied, 2: denied}, LOST).errors
