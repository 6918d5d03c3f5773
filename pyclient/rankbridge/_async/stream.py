"""A stream of a gang's operations: the next is on its way while one runs."""

from __future__ import annotations

import contextlib
from types import TracebackType
from typing import Any, Self

from rankbridge._async.front import AsyncGangFront
from rankbridge._plan.gang_calls import Joined
from rankbridge._plan.gang_core import all_values
from rankbridge._plan.groups import Group
from rankbridge._plan.procedures import Finish
from rankbridge._plan.streaming import StreamedCore, Unreported, streaming
from rankbridge._transport.aio.channels import AsyncChannels
from rankbridge._transport.aio.lock import AsyncLock
from rankbridge._transport.aio.pending import AsyncPending
from rankbridge._transport.streams import RankStream
from rankbridge.errors import GangError, InvalidArgumentError, Outcome


class AsyncStreamed(StreamedCore):
    """An operation that was begun with ``AsyncGangStream.submit``.

    Attributes:
        operation: Kind of operation.
        operation_id: Its id, the same on every member.
        ranks: Ranks of the members, in group order.
    """

    def __init__(
        self,
        channels: AsyncChannels,
        gang_call: Joined[Any],
        pending: AsyncPending[Any],
        finish: Finish,
        before: AsyncStreamed | None,
    ) -> None:
        """Made by ``AsyncGangStream``. `before`: what was sent before it."""
        super().__init__(gang_call, finish, pending, before)
        self._channels = channels
        self._pending: AsyncPending[Any] = pending

    async def result(self) -> Any:
        """Waits until it is answered, at most until its deadline. May be called again.

        An interrupted wait (Ctrl-C, a cancelled task) withdraws it.

        Returns:
            What the direct call gives.

        Raises:
            GangError: It failed, as the direct call would.
        """
        return self._finish(all_values(await self.outcomes()))

    async def outcomes(self) -> list[Outcome[Any]]:
        """Waits likewise, and gives every member's outcome, in group order."""
        if self._told is None:
            try:
                for earlier in self._before_this():
                    await earlier._pending._wait()
            except BaseException:
                self.cancel()
                raise
            self._told = await self._channels.answered(self._gang_call, self._pending)
        return self._told

    async def _await(self) -> None:
        await self._pending._wait()


class AsyncGangStream:
    """Operations of one group that are sent one after another, and answered in that order, each as soon as it is done.

    To be used as a context manager. At its end it waits for all that was begun, and raises the first failure that
    neither `Streamed.result` nor `Streamed.outcomes` has raised. If its block fails, what was not admitted is
    withdrawn. Thread-safe.

    Attributes:
        group: The group, or its name.
    """

    def __init__(self, gang: AsyncGangFront, group: str | Group) -> None:
        """Made by ``AsyncGang.stream``."""
        self.group = group
        self._gang = gang
        self._lock = AsyncLock()
        self._stream: RankStream | None = None
        self._last: AsyncStreamed | None = None
        self._unreported: Unreported[AsyncStreamed] = Unreported()
        self._closed = False

    async def submit(self, operation: str, given: Any = None, **options: Any) -> AsyncStreamed:
        """Sends a collective, and returns at once; while very many are not answered, as soon as one more is.

        Args:
            operation: Name of the gang's method: "all_reduce", "broadcast_object", "ping".
            given: What the method takes first: refs, a value, values; None for one that takes nothing.
            **options: What else the method takes, but `group` and `calls`.

        Returns:
            The operation: its `result` waits.

        Raises:
            InvalidArgumentError: There is no such collective, it is too large for a gang call, or the stream is closed.
            CallCancelledError: The gang is closed.
        """
        gang = self._gang
        gang_call, finish = await gang._carried_out(streaming(gang, self.group, operation, given, options))
        with self._lock:
            if self._closed:
                raise InvalidArgumentError("the stream is closed", operation=operation)
            pending = gang._channels.send_by(self._stream, gang_call.call)
            self._stream = pending._stream
            streamed = AsyncStreamed(gang._channels, gang_call, pending, finish, self._last)
            self._last = streamed
            oldest = self._unreported.add(streamed)
        if oldest is not None:
            await oldest._await()
        return streamed

    async def close(self) -> None:
        """Waits for all that was begun; raises as leaving the block does. Nothing can be submitted any more.

        What interrupts the waiting withdraws all that was not admitted.

        Raises:
            GangError: The first failure that was not raised before.
        """
        with self._lock:
            self._closed = True
            begun = self._unreported.take()
            stream, self._stream, self._last = self._stream, None, None
        try:
            failures = [error for it in begun if (error := await _unreported(it)) is not None]
        except BaseException:
            _withdraw(begun)
            raise
        finally:
            if stream is not None:
                stream.close()
        if failures:
            raise failures[0]

    async def __aenter__(self) -> Self:
        """Gives the stream."""
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Closes it; if the block failed, withdraws first what was begun, and raises that failure alone."""
        if kind is None:
            await self.close()
            return
        with self._lock:
            begun = list(self._unreported)
        _withdraw(begun)
        with contextlib.suppress(GangError):
            await self.close()


async def _unreported(streamed: AsyncStreamed) -> GangError | None:
    """Waits for it; gives its failure, if it was not raised before."""
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
