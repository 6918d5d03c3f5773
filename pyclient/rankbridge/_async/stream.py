"""A stream of a gang's operations, for asyncio."""

from __future__ import annotations

import asyncio
import contextlib
from types import TracebackType
from typing import Any, Self

import grpc

from rankbridge._async.front import AsyncGangFront
from rankbridge._plan.gang_calls import Joined
from rankbridge._plan.gang_core import all_values
from rankbridge._plan.procedures import Finish
from rankbridge._plan.status import Group
from rankbridge._plan.streaming import StreamedCore, Untold, streaming
from rankbridge._transport.aio.channels import AsyncChannels
from rankbridge._transport.aio.stream import AsyncAnswer, AsyncExecution
from rankbridge._transport.framing import ExecutionOver, StreamLost
from rankbridge.errors import GangError, InvalidArgumentError, Outcome, RankBridgeError

__all__ = ["AsyncGangStream", "AsyncGangStreams", "AsyncStreamed"]


class AsyncStreamed(StreamedCore):
    """An operation that was begun with ``AsyncGangStream.submit``: as ``Streamed``, to be awaited.

    Attributes:
        operation: Kind of operation.
        operation_id: Its id, the same on every member.
        ranks: Ranks of the members, in group order.
    """

    def __init__(
        self,
        channels: AsyncChannels,
        gang_call: Joined[Any],
        sent: tuple[AsyncExecution, AsyncAnswer],
        finish: Finish,
    ) -> None:
        """Made by ``AsyncGangStream``."""
        super().__init__(gang_call, finish)
        self._channels = channels
        self._stream, self._answer = sent

    def done(self) -> bool:
        """As ``Streamed.done``."""
        return self._answer.done()

    async def result(self) -> Any:
        """As ``Streamed.result``. Cancelling who waits withdraws it."""
        return self._finish(all_values(await self.outcomes()))

    async def outcomes(self) -> list[Outcome[Any]]:
        """As ``Streamed.outcomes``."""
        if self._told is None:
            self._told = await self._channels.answered(self._gang_call, self._stream, self._answer)
        return self._told

    def cancel(self) -> None:
        """As ``Streamed.cancel``."""
        if not self.done():
            self._stream.withdraw(self.operation_id)

    def _response(self) -> bytes:
        try:
            return self._answer.response()
        except asyncio.CancelledError:
            raise ExecutionOver from None

    async def _await(self) -> None:
        with contextlib.suppress(TimeoutError, RankBridgeError, grpc.RpcError, StreamLost, ExecutionOver):
            await self._answer.wait(self._gang_call.call.deadline)


class AsyncGangStream:
    """As ``GangStream``, for asyncio: an asynchronous context manager.

    Attributes:
        group: The group, or its name.
    """

    def __init__(self, gang: AsyncGangFront, group: str | Group) -> None:
        """Made by ``AsyncGang.stream``."""
        self.group = group
        self._gang = gang
        self._execution: AsyncExecution | None = None
        self._untold: Untold[AsyncStreamed] = Untold()
        self._closed = False

    async def submit(self, operation: str, given: Any = None, **options: Any) -> AsyncStreamed:
        """As ``GangStream.submit``."""
        gang = self._gang
        gang_call, finish = await gang._carried_out(streaming(gang, self.group, operation, given, options))
        if self._closed:
            raise InvalidArgumentError("the stream is closed", operation=operation)
        sent = gang._channels.send_by(self._execution, gang_call.call)
        self._execution = sent[0]
        streamed = AsyncStreamed(gang._channels, gang_call, sent, finish)
        oldest = self._untold.add(streamed)
        if oldest is not None:
            await oldest._await()
        return streamed

    async def close(self) -> None:
        """As ``GangStream.close``."""
        self._closed = True
        begun = self._untold.take()
        execution, self._execution = self._execution, None
        try:
            failures = [error for it in begun if (error := await _untold(it)) is not None]
        except BaseException:
            _withdraw(begun)
            raise
        finally:
            if execution is not None:
                execution.close()
        if failures:
            raise failures[0]

    async def __aenter__(self) -> Self:
        """Gives the stream."""
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        """As leaving the block of a ``GangStream``."""
        if kind is None:
            await self.close()
            return
        _withdraw(list(self._untold))
        with contextlib.suppress(GangError):
            await self.close()


async def _untold(streamed: AsyncStreamed) -> GangError | None:
    """Waits for it; gives its failure, if nobody was told."""
    if streamed._told is None:
        try:
            all_values(await streamed.outcomes())
        except GangError as error:
            return error
    return None


def _withdraw(begun: list[AsyncStreamed]) -> None:
    """The last first: none is begun because one before it is not any more."""
    for streamed in reversed(begun):
        streamed.cancel()


class AsyncGangStreams(AsyncGangFront):
    """How an ``AsyncGang`` is driven by streams."""

    def stream(self, group: str | Group = "world") -> AsyncGangStream:
        """As ``Gang.stream``, for ``async with``."""
        return AsyncGangStream(self, group)
