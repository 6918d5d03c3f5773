"""A call that goes on while its caller does something else, for asyncio."""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

from rankbridge._plan.calls import Call
from rankbridge._transport.pending import PendingCore, given
from rankbridge.errors import Outcome, RankBridgeError

if TYPE_CHECKING:
    from rankbridge._transport.aio.channels import AsyncChannels

T = TypeVar("T")


class AsyncPending(PendingCore[T]):
    """A call that was begun and may not have ended: ``Pending`` for asyncio.

    Attributes:
        operation: Kind of operation.
        operation_id: Its id. Empty: it has none.
        rank: Rank in the gang that was called.
    """

    _channels: AsyncChannels

    def __init__(self, channels: AsyncChannels, call: Call[T], *, ordered: bool = False) -> None:
        """Made by ``AsyncChannels``. The time until the call's deadline begins."""
        super().__init__(channels, call, ordered=ordered)
        # How it has ended.
        self._future: asyncio.Future[Callable[[], T]] = asyncio.get_running_loop().create_future()
        # What makes its own RPC.
        self._task: asyncio.Task[T] | None = None

    async def result(self, timeout: float | None = None) -> T:
        """Waits for the end, as ``Pending.result``. Cancelling who waits does not cancel the call."""
        await self._wait(timeout)
        return self._ended()

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
        return self._future.done() or self._is_late()

    def cancel(self) -> None:
        """Stops waiting for the rank, which withdraws an operation that was not admitted yet. An ended call stays."""
        self._cancelled = True
        if self._future.done():
            return
        self._withdraw()
        if self._task is not None:
            self._task.cancel()
        self._raise(self._call.cancelled())

    def _go_alone(self) -> None:
        """Sends the call by its own RPC."""
        self._task = asyncio.create_task(self._channels.alone(self._call))
        self._task.add_done_callback(self._replied)

    async def _wait(self, timeout: float | None = None) -> None:
        """Waits for the end, as `result` does, and gives nothing."""
        while not self._future.done():
            await asyncio.wait([self._future], timeout=self._longest(timeout))
            if not self._future.done():
                self._waited(timeout)

    def _ended(self) -> T:
        """Gives the result of a call that has ended, as `result` does."""
        return self._future.result()()

    def _replied(self, task: asyncio.Task[T]) -> None:
        if task.cancelled():
            self._raise(self._call.cancelled())
        elif error := task.exception():
            self._raise(error)
        else:
            self._end(functools.partial(given, task.result()))

    def _end(self, finish: Callable[[], T]) -> None:
        if not self._future.done():
            self._future.set_result(finish)
