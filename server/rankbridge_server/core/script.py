"""What the user's own code in a rank's process does with torch.distributed: a function, or the script of a job."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from .hold.holds import Holds


class ScriptGroup(NamedTuple):
    """A group of torch.distributed. `name`: torch's own. `description`: for people; empty: it has none."""

    name: str
    ranks: tuple[int, ...]
    description: str


class ScriptCall(NamedTuple):
    """A collective that was called. `number`: in its group, from 1. `called_at`: in seconds since 1970."""

    group: str
    number: int
    operation: str
    dtypes: tuple[str, ...]
    shapes: tuple[tuple[int, ...], ...]
    called_at: float
    done: bool


class Script(Protocol):
    """The user's own code. Safe to use from any thread."""

    def hold_at(self, holds: Holds) -> None:
        """Makes its collectives come to the breakpoints of a rank, from now on. Called once."""

    def calls(self) -> tuple[Sequence[ScriptGroup], Sequence[ScriptCall]]:
        """Its groups, and its newest collectives in their order."""


class NoScript:
    """There is none that uses torch.distributed."""

    def hold_at(self, holds: Holds) -> None:
        """Does nothing."""

    def calls(self) -> tuple[Sequence[ScriptGroup], Sequence[ScriptCall]]:
        """None."""
        return (), ()
