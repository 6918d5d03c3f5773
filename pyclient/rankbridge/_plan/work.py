"""One rank's part of an operation by its id, and its outcome once that is known. No I/O."""

from __future__ import annotations

from typing import Any, Generic, TypeVar

from rankbridge._plan import operations as ops
from rankbridge._plan.calls import Call
from rankbridge._plan.status import OperationStatus
from rankbridge._plan.submitted import SubmittedCore
from rankbridge.errors import (
    CallCancelledError,
    DeadlineExceededError,
    Outcome,
    RankBridgeError,
    TransportError,
    UnknownOperationError,
)

T = TypeVar("T")


class WorkCore(SubmittedCore, Generic[T]):
    """One rank's part of an operation, and its outcome once that is known here.

    Attributes:
        operation_id: Its id.
        ranks: The rank.
    """

    _outcome: Outcome[T] | None = None

    def _poll(self) -> Call[OperationStatus]:
        (call,) = self._on_members(ops.poll)
        return call

    def _await(self, timeout: float | None) -> Call[Any]:
        (call,) = self._awaits(timeout)
        return call

    def _cancel(self) -> Call[bool]:
        (call,) = self._on_members(ops.cancel)
        return call

    def _ended(self, value: T) -> T:
        """Keeps what the operation gave, and gives it."""
        self._outcome = Outcome(rank=self.ranks[0], value=value)
        return value

    def _failed(self, error: RankBridgeError) -> None:
        """Keeps how the operation failed, unless only the asking for it did."""
        of_asking = TransportError, DeadlineExceededError, UnknownOperationError
        closed = isinstance(error, CallCancelledError) and error.indefinite
        if not (isinstance(error, of_asking) or closed):
            self._outcome = Outcome(rank=self.ranks[0], error=error)

    def _kept(self, outcome: Outcome[T]) -> T:
        """Gives or raises the outcome that is known."""
        if outcome.error is not None:
            raise outcome.error
        value: T = outcome.value  # type: ignore[assignment]
        return value
