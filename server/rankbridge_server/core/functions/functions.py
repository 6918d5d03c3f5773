"""What the core needs from those who keep the user's functions."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum, auto
from typing import TYPE_CHECKING, NoReturn, Protocol

from ..errors import BridgeError, ErrorCode
from ..operations.outcome import Outcome, Packed

if TYPE_CHECKING:
    from ..generation import Generation
    from ..operations.operation import Site
    from .run import Run

Body = Callable[["Run"], Callable[[], Outcome]]
"""Calls a function with its arguments, on the calling thread. What it returns commits the result, and is quick."""


class ParameterKind(Enum):
    """How a parameter is given. Names are those of `rankbridge.v1.ParameterKind`."""

    PLAIN = auto()
    POSITIONAL = auto()
    NAMED = auto()
    REST = auto()
    NAMED_REST = auto()


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameter:
    """A parameter of a function. `type`, `default`: as Python writes them; empty: there is none."""

    name: str
    kind: ParameterKind
    type: str
    optional: bool
    default: str


@dataclass(frozen=True, slots=True, kw_only=True)
class FunctionDescription:
    """A function that can be called. `yields`: each value that it yields is a report."""

    name: str
    doc: str
    parameters: tuple[Parameter, ...]
    returns: str
    yields: bool
    signature: str


class Functions(Protocol):
    """The functions of one rank. Safe to call from any thread."""

    def describe(self) -> Sequence[FunctionDescription]:
        """All functions, by name."""

    def bind(self, site: Site, function: str, names: Sequence[str], values: Sequence[Packed]) -> Body:
        """Checks a call. `names`: of the parameters; empty for those that are given by their place.

        Raises UNKNOWN_FUNCTION, INVALID_ARGUMENT, or what a ref can raise.
        """

    def formed(self, generation: Generation) -> None:
        """Prepares the functions for a new generation, in the background: calls wait for it."""

    def begun(self) -> Mapping[str, int]:
        """How many collectives this rank has begun in each torch.distributed group, by torch's name."""

    def waits(self, run: Run, begun: Mapping[str, int]) -> bool:
        """Whether a run waits in torch.distributed for a rank that has begun `begun`, and begins no more."""


class NoFunctions:
    """The functions of a rank into which nothing was loaded."""

    def describe(self) -> Sequence[FunctionDescription]:
        """None."""
        return ()

    def bind(self, site: Site, function: str, names: Sequence[str], values: Sequence[Packed]) -> NoReturn:
        """Raises UNKNOWN_FUNCTION."""
        raise unknown_function(function, ())

    def formed(self, generation: Generation) -> None:
        """Does nothing."""

    def begun(self) -> Mapping[str, int]:
        """Nothing."""
        return {}

    def waits(self, run: Run, begun: Mapping[str, int]) -> bool:
        """Never."""
        return False


def unknown_function(name: str, known: Sequence[str]) -> BridgeError:
    """The error for a function that this rank does not offer."""
    expected = "one of " + ", ".join(known) if known else "a rank with functions: rankbridge up --load FILE"
    return BridgeError.of(
        ErrorCode.UNKNOWN_FUNCTION, f"no function {name!r} on this rank", expected=expected, got=repr(name)
    )
