"""How right the errors of a case were."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass

from tests.score.labelled import Labelled, Truth
from tests.score.run import Outcome

from rankbridge import RankBridgeError

_AT_FAULT = ("missing", "lost", "failed")


@dataclass(frozen=True)
class Score:
    """Of one case.

    Attributes:
        good: All but the noise is as it should be.
        detected: Some call failed.
        kind: Every rank whose call cannot succeed first got the right code.
        named: The error of each names exactly who is missing, lost or refused, or asks for what.
        false_blame: Somebody was named who is there, or with those who ask for something else.
        hung: A call did not end by itself.
        noise: Errors beyond the first of each rank whose call cannot succeed.
        seconds: Until the last call had ended.
    """

    good: bool
    detected: bool
    kind: bool
    named: bool
    false_blame: bool
    hung: bool
    noise: int
    seconds: float


def score(case: Labelled, it: Outcome) -> Score:
    """Compares errors with the label. Of a correct case, an error is a false alarm: detected, and noise."""
    count = sum(map(len, it.errors.values())) + it.afterwards
    truth = case.truth
    if truth is None:
        silent = count == 0
        return Score(
            silent and not it.hung, not silent, silent, silent, not silent, it.hung, count, it.seconds
        )
    first = {rank: errors[0] for rank, errors in it.errors.items()}
    kind = all(rank in first and str(first[rank].code) == code for rank, code in truth.codes.items())
    named = all(rank in first and _exact(first[rank], rank, truth) for rank in truth.codes)
    blamed = any(_falsely(error, rank, truth) for rank, error in first.items())
    noise = count - len(truth.codes.keys() & first.keys())
    good = kind and named and not blamed and not it.hung
    return Score(good, count > 0, kind, named, blamed, it.hung, noise, it.seconds)


def _exact(error: RankBridgeError, rank: int, truth: Truth) -> bool:
    if truth.sides:
        return _sides(error, rank) == truth.sides
    return _at_fault(error) == truth.at_fault.get(rank, frozenset())


def _falsely(error: RankBridgeError, rank: int, truth: Truth) -> bool:
    """Whether it names somebody who is there, or puts ranks on one side that ask for different things."""
    if not _at_fault(error) <= truth.at_fault.get(rank, frozenset()):
        return True
    return bool(truth.sides) and any(
        not any(it <= side for side in truth.sides) for it in _sides(error, rank)
    )


def _at_fault(error: RankBridgeError) -> frozenset[int]:
    return frozenset(it.rank for it in error.ranks if it.state in _AT_FAULT)


def _sides(error: RankBridgeError, rank: int) -> frozenset[frozenset[int]]:
    """An error of a message has the other end alone; this one is its `expected`."""
    asked: dict[str, set[int]] = defaultdict(set)
    for it in error.ranks:
        asked[it.detail].add(it.rank)
    sides = frozenset(map(frozenset, asked.values()))
    return sides if any(rank in it for it in sides) else sides | {frozenset({rank})}
