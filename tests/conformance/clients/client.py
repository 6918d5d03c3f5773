"""What a client must do for a case to be replayed with it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol, TypeAlias

from tests.conformance.moments import Answer
from tests.conformance.values import Tensor

from rankbridge import Ref

CallArguments: TypeAlias = tuple[tuple[Any, ...], Mapping[str, Any]]
"""What one rank gives to a call: arguments and options, in the words of the clients."""


class Client(Protocol):
    """One connection to a gang. Values are Python values, refs are `Ref`."""

    name: str

    def put(self, rank: int, tensor: Tensor) -> Ref:
        """Brings a tensor to a rank."""

    def get(self, ref: Ref) -> Tensor:
        """Fetches a tensor."""

    def call(
        self,
        method: str,
        args: tuple[Any, ...],
        options: Mapping[str, Any],
        group: str,
        members: Sequence[int],
    ) -> dict[int, Answer]:
        """Calls a method of the gang, and gives each member's answer, by rank."""

    def each(
        self, method: str, given: Mapping[int, CallArguments], group: str, timeout: float | None = None
    ) -> dict[int, Answer]:
        """Calls a method of each of some ranks, of all at once, and gives their answers."""

    def new_groups(self, groups: Sequence[tuple[str, Sequence[int]]]) -> Answer:
        """Makes groups, all or none."""

    def destroy_groups(self, names: Sequence[str]) -> None:
        """Ends groups."""
