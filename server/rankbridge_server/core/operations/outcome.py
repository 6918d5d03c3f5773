"""What an operation gives its caller on one rank."""

from __future__ import annotations

from dataclasses import dataclass

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
    if isinstance(value, bytes):
        return len(value)
    if isinstance(value, (list, tuple)):
        return sum(map(weight_of, value))
    parts = _parts_of(type(value))
    if not parts:
        return 0
    weight: int = getattr(value, "weight", 0)
    return weight + sum(weight_of(getattr(value, part)) for part in parts if part != "weight")


def _parts_of(kind: type) -> tuple[str, ...]:
    """Attributes in which objects are, or that tell their weight."""
    parts = _PARTS.get(kind)
    if parts is None:
        names = ("weight", "data", "value", "values", "dict", "skeleton", "outcome")
        parts = _PARTS[kind] = tuple(name for name in names if hasattr(kind, name))
    return parts


_PARTS: dict[type, tuple[str, ...]] = {}
