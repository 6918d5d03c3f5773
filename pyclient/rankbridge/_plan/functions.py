"""Functions of the user's own on ranks: their arguments, and what ranks say of them. No I/O."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from rankbridge._plan.ref import Ref
from rankbridge.errors import InvalidArgumentError

ParameterKind = Literal["plain", "positional", "named", "rest", "named_rest", "unspecified"]
"""How a parameter is given: by place or name, by place alone, by name alone; or all further ones, by place, by name."""


class Each:
    """Arguments of a function of which every member of the group gets its own: ``gang.call("step", Each(batches))``.

    Refs of all members, as ``gang.put`` gives them, need none: each member gets its own.

    Attributes:
        values: One for each member, in group order.
    """

    def __init__(self, values: Sequence[object]) -> None:
        """Takes a sequence, or anything that can be gone through."""
        self.values = list(values)

    def __repr__(self) -> str:
        """Gives the values."""
        return f"Each({self.values!r})"


@dataclass(frozen=True, slots=True)
class Arguments:
    """Arguments of a call on all members, by place and by name."""

    args: tuple[object, ...]
    kwargs: Mapping[str, object]

    @property
    def alike(self) -> bool:
        """Whether all members get the same."""
        return not any(isinstance(it, Each) or _is_refs(it) for it in (*self.args, *self.kwargs.values()))

    def of(self, function: str, members: Sequence[int], place: int) -> Arguments:
        """Gives those of one member.

        Raises:
            InvalidArgumentError: An ``Each`` has not one value for each member.
        """

        def own(it: object) -> object:
            if isinstance(it, Each):
                if len(it.values) != len(members):
                    raise InvalidArgumentError(
                        f"{function}: Each has not one value for each member",
                        operation="call_function",
                        expected=str(len(members)),
                        got=str(len(it.values)),
                    )
                return it.values[place]
            return it[place] if _is_refs(it, members) else it  # type: ignore[index]

        return Arguments(tuple(map(own, self.args)), {name: own(it) for name, it in self.kwargs.items()})


def _is_refs(it: object, members: Sequence[int] | None = None) -> bool:
    """Whether it is one ref of each member, in group order."""
    if not isinstance(it, list | tuple) or not it or not all(isinstance(ref, Ref) for ref in it):
        return False
    return members is None or [ref.rank for ref in it] == list(members)


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameter:
    """A parameter of a function.

    Attributes:
        name: Its name.
        kind: How it is given.
        type: Its type, as Python writes it. Empty: not annotated.
        optional: Whether it may be left out.
        default: Its default, as Python writes it. Empty: it has none.
    """

    name: str
    kind: ParameterKind
    type: str
    optional: bool
    default: str


@dataclass(frozen=True, slots=True, kw_only=True)
class FunctionDescription:
    """A function that ranks offer.

    Attributes:
        name: Its name.
        doc: Its docstring. Empty: it has none.
        parameters: In order.
        returns: The type that it returns, as Python writes it. Empty: not annotated.
        yields: Whether it yields: each value is a report.
        signature: As Python writes it: "(batch: int, lr: float = 0.1)".
    """

    name: str
    doc: str
    parameters: tuple[Parameter, ...]
    returns: str
    yields: bool
    signature: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """What a function has reported on one rank.

    Attributes:
        rank: Rank in the gang.
        number: Number among the reports of the call on this rank, from 1.
        time: When, by the clock of the rank's host: seconds since 1970 in UTC.
        value: What was reported: a map of names to values, or what the function yielded.
        missed: Reports before it that the rank dropped before this reader could get them. 0: none.
    """

    rank: int
    number: int
    time: float
    value: Any
    missed: int = 0
