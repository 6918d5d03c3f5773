"""Whom `together` steps, so that ranks that are held at different calls meet at one."""

from __future__ import annotations

from rankbridge._plan.catch_up import CatchUp
from rankbridge._plan.holding import HeldCall


def held(rank: int, number: int, group: str = "world", operation: str = "all_reduce") -> HeldCall:
    return HeldCall(
        held_id=number,
        breakpoint=1,
        rank=rank,
        caller="script",
        operation=operation,
        group=group,
        number=number,
        contract="",
        site="",
        function="",
        operation_id="",
        why="step",
        after=False,
        since=0.0,
    )


def test_those_are_stepped_for_whom_another_rank_waits_in_their_call() -> None:
    catch_up = CatchUp([0, 1, 2])
    calls = [held(1, 4), held(2, 4)]
    assert not catch_up.is_reached(calls)
    assert catch_up.behind(calls) == calls


def test_a_rank_that_is_ahead_is_not_stepped_before_the_others_have_come() -> None:
    catch_up = CatchUp([0, 1, 2])
    catch_up.behind([held(1, 4), held(2, 4)])
    assert catch_up.behind([held(0, 5)]) == []
    assert catch_up.behind([held(0, 5), held(2, 5)]) == []
    assert catch_up.is_reached([held(0, 5), held(1, 5), held(2, 5)])


def test_a_rank_that_has_gone_further_than_those_that_are_held_is_not_waited_for() -> None:
    catch_up = CatchUp([0, 1])
    assert catch_up.behind([held(0, 6)]) == [held(0, 6)]
    assert catch_up.behind([held(1, 4)]) == [held(1, 4)]
    assert catch_up.behind([held(1, 5)]) == [held(1, 5)]
    assert catch_up.behind([held(1, 6)]) == [held(1, 6)]


def test_of_all_ranks_that_are_held_the_lowest_of_each_group_are_stepped() -> None:
    catch_up = CatchUp([0, 1, 2])
    calls = [held(0, 3), held(1, 4), held(2, 1, group="pair")]
    assert catch_up.behind(calls) == [held(0, 3), held(2, 1, group="pair")]


def test_calls_of_one_number_that_differ_are_not_the_same() -> None:
    catch_up = CatchUp([0, 1])
    assert not catch_up.is_reached([held(0, 3), held(1, 3, operation="barrier")])
