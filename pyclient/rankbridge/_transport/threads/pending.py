"""A call that goes on while its caller does something else."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar

from rankbridge._plan.calls import Call
from rankbridge.errors import Outcome, RankBridgeError

T = TypeVar("T")

__all__ = ["Pending"]


class Pending(Generic[T]):
    """A call that was begun and may not have ended.

    Attributes:
        operation: Kind of operation.
        operation_id: Its id. Empty: it has none.
        rank: Rank in the gang that was called.
    """

    def __init__(
        self, call: Call[T], future: Any, finish: Callable[[float | None], T], cancel: Callable[[], Any]
    ):
        """Holds a call in flight; made by ``Rank.start``."""
        self.operation = call.kind
        self.operation_id = call.operation_id
        self.rank = call.rank
        self._future = future
        self._finish = finish
        self._cancel = cancel

    def result(self, timeout: float | None = None) -> T:
        """Waits for the end.

        Args:
            timeout: Longest time to wait, in seconds. None: until the call's own deadline, which it has
                always.

        Raises:
            RankBridgeError: The call failed.
            TimeoutError: It has not ended yet; it goes on.
        """
        return self._finish(timeout)

    def exception(self, timeout: float | None = None) -> RankBridgeError | None:
        """Waits for the end, and gives the error that `result` would raise, or None.

        Raises:
            TimeoutError: The call has not ended yet; it goes on.
        """
        return self.outcome(timeout).error

    def outcome(self, timeout: float | None = None) -> Outcome[T]:
        """Waits for the end, and gives value or error.

        Raises:
            TimeoutError: The call has not ended yet; it goes on.
        """
        try:
            return Outcome(rank=self.rank, value=self._finish(timeout))
        except RankBridgeError as error:
            return Outcome(rank=self.rank, error=error)

    def done(self) -> bool:
        """Says whether the call has ended."""
        return bool(self._future.done())

    def cancel(self) -> None:
        """Stops waiting for the rank, which withdraws an operation that was not admitted yet. An ended call stays."""
        self._cancel()
