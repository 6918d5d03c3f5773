"""Functions of the user's own, called on ranks, for asyncio."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Any, Self

from rankbridge._plan.calls import Call
from rankbridge._plan.functions import Report
from rankbridge._plan.gang_calls import joined
from rankbridge._plan.gang_core import all_values
from rankbridge._transport.aio.channels import AsyncChannels
from rankbridge._transport.aio.readings import AsyncReadings
from rankbridge.errors import Outcome, RankBridgeError


class AsyncFunctionCall:
    """A function that was called on several ranks, or on one, and may not have returned: of ``start``.

    Attributes:
        function: Name of the function.
        operation_id: Id of the call, the same on every rank.
        ranks: Ranks that were called, in group order.
    """

    def __init__(
        self,
        channels: AsyncChannels,
        function: str,
        calls: Sequence[Call[Any]],
        watch: Callable[[int, str], Call[Report | None]],
    ) -> None:
        """Made by the gang; sends the calls.

        Args:
            channels: The gang's.
            function: Its name.
            calls: What calls it, on each rank.
            watch: Makes the call that watches the reports of a rank.
        """
        self._channels = channels
        self._whole = joined(calls)
        each = list(calls)
        self.function = function
        self.operation_id = each[0].operation_id
        self.ranks = tuple(call.rank for call in each)
        self._watch = watch
        self._outcomes: list[Outcome[Any]] | None = None
        self._pendings = [channels.start(it) for it in ([self._whole.call] if self._whole else each)]

    def __repr__(self) -> str:
        """Gives function, id and ranks."""
        return f"{type(self).__name__}({self.function}, {self.operation_id!r}, ranks {list(self.ranks)})"

    def done(self) -> bool:
        """Says whether every rank has answered: whether `result` would wait."""
        return all(it.done() for it in self._pendings)

    def cancel(self) -> None:
        """Withdraws it where it has not begun, and asks it to end where it has: its context says ``cancelled``."""
        for pending in self._pendings:
            pending._withdraw()

    def reports(self) -> AsyncReports:
        """Watches what it reports on every rank, from its first report on, as far as ranks keep it."""
        calls = [self._watch(rank, self.operation_id) for rank in self.ranks]
        return AsyncReports(self._channels, calls, self.done)

    async def result(self) -> list[Any]:
        """Waits until every rank has answered, at most until its deadline. May be called again.

        Returns:
            What the function returned on each rank, in group order.

        Raises:
            GangError: It failed on some: ``FunctionFailedError`` and others, as of ``AsyncGang.call``.
        """
        return all_values(await self.outcomes())

    async def outcomes(self) -> list[Outcome[Any]]:
        """Waits likewise, and gives every rank's outcome, in group order."""
        if self._outcomes is None:
            if self._whole is not None:
                self._outcomes = await self._channels.answered(self._whole, self._pendings[0])
            else:
                self._outcomes = [await it.outcome() for it in self._pendings]
        return self._outcomes


class AsyncReports:
    """What a call of a function reports: an iterator that waits for the next report of any rank.

    It ends when the call has ended on every rank. A slow reader delays no rank: it misses reports, and `missed` of the
    next one counts them. Use it in an ``async with`` statement, or read it to its end, or close it.
    """

    def __init__(
        self, channels: AsyncChannels, calls: Sequence[Call[Report | None]], is_answered: Callable[[], bool]
    ) -> None:
        """Made by ``AsyncFunctionCall.reports``."""
        self._open = {call.rank for call in calls}
        self._begun = set[int]()
        self._is_answered = is_answered
        self._readings = AsyncReadings(channels, calls)

    def __aiter__(self) -> Self:
        """Gives itself."""
        return self

    async def __anext__(self) -> Report:
        """Waits for the next report.

        Raises:
            RankBridgeError: A rank reports no more because of this, and the call has not ended there.
        """
        while self._open:
            said = await self._readings.next()
            if said is None:
                break
            if isinstance(said.what, Report):
                return said.what
            if said.what is None and said.rank not in self._begun:
                self._begun.add(said.rank)
                continue
            self._open.discard(said.rank)
            if isinstance(said.what, RankBridgeError) and not self._is_answered():
                await self.close()
                raise said.what
        await self.close()
        raise StopAsyncIteration

    async def __aenter__(self) -> Self:
        """Gives itself."""
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Closes it."""
        await self.close()

    async def close(self) -> None:
        """Stops watching. Whoever waits for a report gets none."""
        self._open.clear()
        await self._readings.close()
