"""Who drives a gang: one of the clients, as chaos needs it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, ClassVar, Protocol

from tests.chaos.operations import Values

from rankbridge import Outcome, Ref


class Flight(Protocol):
    """A call in flight on one rank."""

    def outcome(self, timeout: float | None = None) -> Outcome[Any]:
        """Waits for the end, at most `timeout` seconds. Raises TimeoutError: it has not ended."""

    def cancel(self) -> None:
        """Hangs up. A call that ended stays as it is."""


class Controller(ABC):
    """One client with a session of its own on every rank of a gang. Times are in seconds.

    What a method asks of ranks raises RankBridgeError when they, or the client, say that it failed.
    """

    name: ClassVar[str]

    @abstractmethod
    def put(self, values: Mapping[int, Values]) -> dict[int, Ref]:
        """Brings one tensor to each of some ranks; by rank."""

    @abstractmethod
    def fetch(self, ref: Ref) -> Values:
        """The tensor of a ref, whoever put it."""

    @abstractmethod
    def create(self, rank: int, number: int) -> list[Ref]:
        """Makes so many tensors of one byte on a rank."""

    @abstractmethod
    def release(self, refs: Sequence[Ref]) -> None:
        """Frees refs of any ranks."""

    @abstractmethod
    def start(
        self,
        rank: int,
        kind: str,
        ref: Ref | None,
        options: Mapping[str, Any],
        *,
        group: str,
        operation_id: str,
        timeout: float,
    ) -> Flight:
        """Begins one rank's part of a collective, and returns at once. `ref` is None for a barrier."""

    @abstractmethod
    def call_all(
        self, kind: str, refs: Sequence[Ref] | None, *, group: str, ranks: Sequence[int], timeout: float
    ) -> list[Ref]:
        """One call of all members, in group order, as a program makes it; gives nothing for a barrier."""

    @abstractmethod
    def await_operation(self, rank: int, operation_id: str, *, timeout: float) -> Ref | None:
        """What became of an operation on a rank."""

    @abstractmethod
    def form(self, survivor: int) -> None:
        """Forms the next generation, by way of a survivor where the client has the choice."""

    @abstractmethod
    def rejoin(self) -> None:
        """Opens the session again where it is missing: another controller has formed a generation."""

    @abstractmethod
    def session(self) -> AbstractContextManager[object]:
        """Another session for the length of a `with` statement, to which belongs what is made inside."""
