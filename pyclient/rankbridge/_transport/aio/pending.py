"""A call that goes on while its caller does something else, for asyncio."""

from __future__ import annotations

import asyncio
from typing import Generic, TypeVar

from rankbridge._plan.calls import Call
from rankbridge.errors import Outcome, RankBridgeError

T = TypeVar("T")

__all__ = ["AsyncPending"]


class AsyncPending(Generic[T]):
    """A call that was begun and may not have ended: ``Pending`` for asyncio.

    Attributes:
        operation: Kind of operation.
        operation_id: Its id. Empty: it has none.
        rank: Rank in the gang that was called.
    """

    def __init__(self, call: Call[T], task: asyncio.Task[T]) -> None:
        """Holds a call in flight; made by ``AsyncRank.start``."""
        self.operation = call.kind
        self.operation_id = call.operation_id
        self.rank = call.rank
        self._task = task
        self._call = call
        # An error that nobody asks for is nobody's: asyncio would log it.
        task.add_done_callback(lambda ended: ended.cancelled() or ended.exception())

    async def result(self, timeout: float | None = None) -> T:
        """Waits for the end, as ``Pending.result``. Cancelling who waits does not cancel the call."""
        await asyncio.wait([self._task], timeout=timeout)
        if not self._task.done():
            raise TimeoutError(f"{self.operation} at rank {self.rank} has not ended yet")
        if self._task.cancelled():
            raise self._call.cancelled()
        return self._task.result()

    async def exception(self, timeout: float | None = None) -> RankBridgeError | None:
        """Waits for the end, and gives the error that `result` would raise, or None."""
        return (await self.outcome(timeout)).error

    async def outcome(self, timeout: float | None = None) -> Outcome[T]:
        """Waits for the end, and gives value or error."""
        try:
            return Outcome(rank=self.rank, value=await self.result(timeout))
        except RankBridgeError as error:
            return Outcome(rank=self.rank, error=error)

    def done(self) -> bool:
        """Says whether the call has ended."""
        return self._task.done()

    def cancel(self) -> None:
        """Stops waiting for the rank, which withdraws an operation that was not admitted yet. An ended call stays."""
        self._task.cancel()
