"""Procedures side by side: the calls of all of them go out at once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

from rankbridge._plan.calls import Call, SideBySide
from rankbridge._plan.procedures import Procedure
from rankbridge.errors import Outcome, RankBridgeError, gang_error

T = TypeVar("T")


def at_once(value: T) -> Procedure[T]:
    """Gives a value without a call."""
    yield from ()
    return value


def together(procedures: Sequence[Procedure[T]]) -> Procedure[list[T]]:
    """Carries out procedures side by side, and gives their results in order.

    One that refuses before any call keeps all from being called. What fails later fails when the others have come to
    their ends, with the outcomes of all. What interrupts ends all of them where they are.
    """
    results: dict[int, T] = {}
    failures: list[RankBridgeError] = []
    outcomes_by_place: dict[int, list[Outcome[Any]]] = {}
    waiting: dict[int, Sequence[Call[Any]]] = {}
    try:
        for place, procedure in enumerate(procedures):
            try:
                waiting[place] = next(procedure)
            except StopIteration as end:
                results[place] = end.value
        while waiting:
            outcomes = iter((yield SideBySide(waiting.values())))
            asked, waiting = waiting, {}
            for place, calls in asked.items():
                outcomes_by_place[place] = [next(outcomes) for _ in calls]
                try:
                    waiting[place] = procedures[place].send(outcomes_by_place[place])
                except StopIteration as end:
                    results[place] = end.value
                except RankBridgeError as error:
                    failures.append(error)
    finally:
        for procedure in procedures:
            procedure.close()
    if failures:
        last = [it for place in sorted(outcomes_by_place) for it in outcomes_by_place[place]]
        raise gang_error(last) if any(it.error is not None for it in last) else failures[0]
    return [results[place] for place in range(len(procedures))]
