"""What an operation gives its caller on one rank."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ..groups.group import GroupView
from ..queues.view import QueueView
from ..refs.refs import Ref


@dataclass(frozen=True, slots=True)
class Packed:
    """A value of no particular language, as the wire encodes it. Opaque to the core."""

    data: bytes


@dataclass(frozen=True, slots=True)
class TensorDict:
    """A map whose tensors stay on the rank. `skeleton`: the map as the wire encodes it, with places for its refs.

    `refs` in the order of their places.
    """

    skeleton: bytes
    refs: tuple[Ref, ...]


@dataclass(frozen=True, slots=True)
class Received:
    """What came from another member, and its rank in the group."""

    outcome: Outcome
    src_rank_in_group: int


Outcome = (
    Ref | GroupView | QueueView | Packed | TensorDict | Received | bool | int | float | list["Outcome"] | None
)


def weight_of(value: object) -> int:
    """Bytes of the objects in an outcome, or in an operation's arguments; of a program, of its steps."""
    weigh = _WEIGHING.get(type(value), _weighing)
    return 0 if weigh is None else weigh(value)


def _weighing(value: object) -> int:
    """Learns how values of a kind are weighed. Every operation is weighed, and most have no objects."""
    kind = type(value)
    parts = tuple(it for it in _PARTS if hasattr(kind, it))
    if issubclass(kind, bytes):
        _WEIGHING[kind] = len
    elif issubclass(kind, (list, tuple)):
        _WEIGHING[kind] = lambda it: sum(map(weight_of, it))
    elif parts or hasattr(kind, "weight"):
        _WEIGHING[kind] = lambda it: (
            getattr(it, "weight", 0) + sum(weight_of(getattr(it, part)) for part in parts)
        )
    else:
        _WEIGHING[kind] = None
    return weight_of(value)


_PARTS = ("data", "value", "values", "dict", "skeleton", "outcome")
"""Names of the attributes in which objects are."""
_WEIGHING: dict[type, Callable[[Any], int] | None] = {}
"""How values of each kind are weighed. None: they weigh nothing."""
