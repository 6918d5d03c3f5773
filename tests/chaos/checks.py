"""Judging outcomes: every value, every error's code and named ranks, every tensor that must not have changed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from tests.chaos.findings import Findings
from tests.chaos.operations import Values

from rankbridge import ErrorCode, RankBridgeError

# What the client says of a rank that went away under a call.
TRANSPORT = frozenset({ErrorCode.UNAVAILABLE, ErrorCode.CANCELLED})


@dataclass(frozen=True)
class Allowed:
    """How one rank's call may end.

    `codes`: of errors. `named`: ranks of which one at least must stand in the error in another state than "arrived";
    empty: none need to. `success`: it may succeed. `definite`: an error must be definite.
    """

    codes: frozenset[ErrorCode]
    named: frozenset[int] = frozenset()
    success: bool = True
    definite: bool = False


@dataclass(frozen=True)
class Ended:
    """How one rank's call ended.

    `error`: None on success. `result`: the value fetched on success. `after`: the input's value afterwards; None: it
    cannot be asked, as its process is gone.
    """

    error: RankBridgeError | None
    result: Values | None
    after: Values | None


@dataclass(frozen=True)
class Called:
    """What one rank's call had to do: `before` is its input, `expected` its result; in place, both are one tensor."""

    before: Values
    expected: Values | None
    in_place: bool


def judge(
    findings: Findings,
    calls: Mapping[int, Called],
    ended: Mapping[int, Ended],
    allowed: Mapping[int, Allowed],
) -> None:
    """Checks how one operation ended on all ranks, by rank."""
    succeeded = [rank for rank, it in ended.items() if it.error is None]
    for rank, it in ended.items():
        call, rule = calls[rank], allowed[rank]
        if it.error is None:
            if not rule.success:
                findings.wrong_error(f"rank {rank} succeeded and cannot have")
            if not equal(it.result, call.expected):
                findings.wrong_result(
                    f"rank {rank} got {described(it.result)}, not {described(call.expected)}"
                )
        else:
            _judge_error(findings, rank, it.error, rule, succeeded)
        right = call.expected if it.error is None and call.in_place else call.before
        if it.after is not None and not equal(it.after, right):
            findings.wrong_result(
                f"the tensor of rank {rank} is {described(it.after)}, not {described(right)}; its call: {it.error}"
            )


def _judge_error(
    findings: Findings, rank: int, error: RankBridgeError, rule: Allowed, succeeded: Sequence[int]
) -> None:
    if error.code not in rule.codes:
        expected = ", ".join(sorted(rule.codes)) or "success"
        findings.wrong_error(f"rank {rank} failed with {error}; expected {expected}")
    named = {detail.rank for detail in error.ranks if detail.state != "arrived"}
    if rule.named and error.code not in TRANSPORT and not named & rule.named:
        findings.wrong_error(f"rank {rank} names {sorted(named)}, none of {sorted(rule.named)}: {error}")
    if rule.definite and error.indefinite:
        findings.wrong_error(f"rank {rank} cannot tell whether it was done, and could: {error}")
    if succeeded and not error.indefinite:
        findings.wrong_error(f"rank {rank} says that nobody did it, and ranks {succeeded} did: {error}")


def equal(one: Values | None, other: Values | None) -> bool:
    """Equal in dtype, shape and every element."""
    if one is None or other is None:
        return one is other
    return one.dtype == other.dtype and one.shape == other.shape and bool(np.array_equal(one, other))


def described(values: Values | None) -> str:
    """A short form of a tensor."""
    return (
        "none" if values is None else f"{values.dtype}{list(values.shape)} {values.reshape(-1)[:4].tolist()}"
    )
