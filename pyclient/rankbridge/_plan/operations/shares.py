"""What each member of a group gets of what a gang is asked for: pure, and the same for every way to call."""

from __future__ import annotations

import enum
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

from rankbridge._plan.calls import Call

P = ParamSpec("P")
T = TypeVar("T")

__all__ = ["FirstArgument", "given", "given_to", "shared_by", "shares"]


class FirstArgument(enum.Enum):
    """What a gang's method of an operation is given first, and who gets what of it."""

    REFS = "one ref of each member"
    NOTHING = "nothing"
    SAME = "what every member gets"
    EACH = "one value of each member"
    SOURCE = "what the source alone gets"
    CALLS = "several calls, each with what it is given itself"
    PROGRAM = "a program, in which each step has what it is given itself"
    NEVER = "the operation is one rank's own"


_GIVEN: dict[str, FirstArgument] = {}

Shares = Callable[[dict[str, Any], int], list[dict[str, Any]]]
"""Makes of the options that a gang's method takes those of each member, by rank in group. Takes their number."""

_SHARES: dict[str, Shares] = {}


def given_to(kind: FirstArgument) -> Callable[[Callable[P, Call[T]]], Callable[P, Call[T]]]:
    """Declares what a gang's method of an operation is given; not said: one ref of each member."""

    def declare(function: Callable[P, Call[T]]) -> Callable[P, Call[T]]:
        _GIVEN[function.__name__] = kind
        return function

    return declare


def given(operation: str) -> FirstArgument:
    """Tells what a gang's method of an operation is given."""
    return _GIVEN.get(operation, FirstArgument.REFS)


def shared_by(operation: str) -> Callable[[Shares], Shares]:
    """Declares how the options of a gang's method are shared among the members, where not all get the same."""

    def declare(function: Shares) -> Shares:
        _SHARES[operation] = function
        return function

    return declare


def shares(operation: str, options: dict[str, Any], members: int) -> list[dict[str, Any]]:
    """Gives each member's options of an operation that a gang is asked for, by rank in group."""
    share = _SHARES.get(operation)
    return share(options, members) if share else [options] * members
