"""What operations are given by value: lists, numbers, and maps of tensors."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from rankbridge._plan.operations.declare import Scope
from rankbridge._plan.ref import Ref
from rankbridge.errors import InvalidArgumentError


def checked_list(operation: str, values: object) -> list[object]:
    """Gives values as a list.

    Raises:
        InvalidArgumentError: They are neither a list nor a tuple.
    """
    if not isinstance(values, list | tuple):
        raise InvalidArgumentError(
            f"{operation} takes a list", operation=operation, expected="a list", got=type(values).__name__
        )
    return list(values)


def checked_tensor_dict(operation: str, tensors: object) -> dict[Any, Any]:
    """Gives a tensor dict as a dict.

    Raises:
        InvalidArgumentError: It is no map, or its refs are of several ranks or sessions.
    """
    if not isinstance(tensors, Mapping):
        raise InvalidArgumentError(
            f"{operation} takes a map", operation=operation, expected="a dict", got=type(tensors).__name__
        )
    given = dict(tensors)
    owners = {(ref.rank, ref.session_id) for ref in refs_in(given)}
    if len(owners) > 1:
        raise InvalidArgumentError(
            "the refs of a tensor dict are of one rank and one session",
            operation=operation,
            expected="one of each",
            got=f"ranks {sorted({rank for rank, _ in owners})}, {len({it for _, it in owners})} session(s)",
        )
    return given


def session_of(scope: Scope, value: object) -> str:
    """Gives the session in which a call with refs in a value is made: theirs, or without any the scope's."""
    return next((ref.session_id for ref in refs_in(value)), scope.session_id)


def refs_in(value: object) -> Iterator[Ref]:
    """Gives every ref in a value and in the lists, tuples and maps in it, keys aside."""
    # A container that contains itself is for `to_value` to refuse.
    waiting, seen = [value], set[int]()
    while waiting:
        found = waiting.pop()
        if isinstance(found, Ref):
            yield found
        elif isinstance(found, Mapping | list | tuple) and id(found) not in seen:
            seen.add(id(found))
            waiting.extend(found.values() if isinstance(found, Mapping) else found)


def checked_number(operation: str, value: object) -> bool | int | float:
    """Gives a number, numpy's as Python's.

    Raises:
        InvalidArgumentError: It is none.
    """
    number = value.item() if isinstance(value, np.generic) else value
    if not isinstance(number, bool | int | float):
        raise InvalidArgumentError(
            f"{operation} takes numbers",
            operation=operation,
            expected="a bool, an int or a float",
            got=type(value).__name__,
        )
    return number
