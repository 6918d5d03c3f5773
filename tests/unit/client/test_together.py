"""Procedures side by side."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from tests.unit.client.declared import SCOPE

from rankbridge import GangError, InvalidArgumentError, MismatchError, PeerMissingError, RankBridgeError
from rankbridge._plan import operations as ops
from rankbridge._plan.calls import SideBySide, Together
from rankbridge._plan.gang_calls import joined
from rankbridge._plan.gang_core import all_values
from rankbridge._plan.procedures import Procedure
from rankbridge._plan.together import at_once, together
from rankbridge.errors import Outcome


def asking(*names: str) -> Procedure[list[Any]]:
    """Asks for each name in a round of its own, and gives the answers."""
    values: list[Any] = []
    for name in names:
        values += all_values((yield [ops.describe_group(SCOPE, name)]))
    return values


def rounds(procedure: Procedure[Any], answers: dict[str, Any]) -> tuple[list[list[str]], Any]:
    """Carries out a procedure, and gives the names asked for in each round, and the result."""
    asked: list[list[str]] = []
    try:
        calls = next(procedure)
        while True:
            asked.append([call.group for call in calls])
            outcomes = [
                Outcome(rank=call.rank, error=it)
                if isinstance(it := answers[call.group], RankBridgeError)
                else Outcome(rank=call.rank, value=it)
                for call in calls
            ]
            calls = procedure.send(outcomes)
    except StopIteration as end:
        return asked, end.value


def test_calls_of_a_round_go_out_together_and_results_are_in_order() -> None:
    procedure = together([asking("a", "b", "c"), at_once("none"), asking("d"), asking("e", "f")])
    answers = {name: name.upper() for name in "abcdef"}
    assert rounds(procedure, answers) == (
        [["a", "d", "e"], ["b", "f"], ["c"]],
        [["A", "B", "C"], "none", ["D"], ["E", "F"]],
    )
    assert rounds(together([]), {}) == ([], [])
    assert rounds(together([at_once(1)]), {}) == ([], [1])


def test_calls_of_one_operation_can_still_go_as_one_gang_call() -> None:
    def barrier(group: str) -> Procedure[list[Any]]:
        scopes = [replace(SCOPE, rank=rank) for rank in range(2)]
        calls = Together(
            [ops.OPERATIONS["barrier"](scope, group=group, operation_id=group) for scope in scopes]
        )
        return all_values((yield calls))

    calls = next(together([barrier("a"), together([barrier("b"), asking("d")]), asking("c")]))
    assert isinstance(calls, SideBySide)
    assert [call.group for call in calls] == ["a", "a", "b", "b", "d", "c"]
    assert [joined(part) is not None for part in calls.parts] == [True, True, False, False]


def test_one_that_refuses_before_any_call_keeps_all_from_being_called() -> None:
    def refusing(error: InvalidArgumentError | None) -> Procedure[None]:
        if error is not None:
            raise error
        yield []

    procedure = together([asking("a"), refusing(InvalidArgumentError("no"))])
    with pytest.raises(InvalidArgumentError, match="no"):
        next(procedure)


def test_one_that_fails_is_told_when_the_others_have_come_to_their_ends() -> None:
    missing = PeerMissingError("nobody came", rank=2)
    procedure = together([asking("a", "b"), asking("c"), asking("d", "e", "f")])
    with pytest.raises(PeerMissingError) as caught:
        rounds(procedure, {"a": 1, "b": 2, "c": missing, "d": 4, "e": 5, "f": 6})
    assert isinstance(caught.value, GangError)
    assert [it.value for it in caught.value.outcomes] == [2, None, 6]
    assert caught.value.indefinite


def test_of_several_that_fail_the_cause_is_told_with_all_outcomes() -> None:
    procedure = together([asking("a"), asking("b")])
    with pytest.raises(MismatchError) as caught:
        rounds(procedure, {"a": PeerMissingError("nobody"), "b": MismatchError("differ")})
    assert isinstance(caught.value, GangError)
    assert [type(it.error) for it in caught.value.outcomes] == [PeerMissingError, MismatchError]


def test_what_interrupts_ends_all() -> None:
    procedures = [asking("a"), asking("b")]
    procedure = together(procedures)
    next(procedure)
    with pytest.raises(KeyboardInterrupt):
        procedure.throw(KeyboardInterrupt())
    assert [list(each) for each in (procedure, *procedures)] == [[], [], []]
