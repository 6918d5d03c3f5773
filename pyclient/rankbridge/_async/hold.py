"""Breakpoints on the ranks of a gang, for asyncio."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from types import TracebackType
from typing import Any, Self, TypeVar

from rankbridge._plan.breakpoints import ParsedBreakpoint
from rankbridge._plan.calls import Call
from rankbridge._plan.catch_up import CatchUp
from rankbridge._plan.events import Said
from rankbridge._plan.holding import (
    MAX_ELEMENTS,
    BreakpointSet,
    HeldCall,
    HeldInput,
    Inspection,
    LetGo,
    LetGoAs,
    break_at,
    check_elements,
    differ_at,
    input_at,
    inspect,
    list_held,
    release,
)
from rankbridge._plan.operations import Scope
from rankbridge._transport.aio.channels import AsyncChannels
from rankbridge._transport.aio.readings import AsyncReadings
from rankbridge.errors import (
    DeadlineExceededError,
    Outcome,
    RankBridgeError,
    UnknownOperationError,
    gang_error,
)

T = TypeVar("T")

_SETTLE_S = 0.2
"""How long ranks that are about to call are waited for."""


class AsyncHold:
    """A breakpoint on ranks of a gang, and the calls that it holds.

    It is set from when it was made until it is closed, or this process ends; then all that it holds goes on. Use it in
    an ``async with`` statement, or close it.

    Attributes:
        ranks: The ranks on which it is set.
        ended: Ranks on which it is set no more, though it was not closed, with the error that has ended it there; None:
            the rank has stopped in good order.
    """

    def __init__(
        self,
        channels: AsyncChannels,
        scope: Callable[[int], Scope],
        ranks: Sequence[int],
        breakpoint: ParsedBreakpoint,
        timeout: float | None,
    ) -> None:
        """Made by ``AsyncGang.hold``."""
        self.ranks = tuple(ranks)
        self.ended: dict[int, RankBridgeError | None] = {}
        self._channels = channels
        self._scope = scope
        self._held: dict[tuple[int, int], HeldCall] = {}
        # The last call of each rank that was read, and those that were let go before that was read.
        self._heard: dict[int, int] = {}
        self._released: set[tuple[int, int]] = set()
        self._numbers: dict[int, int] = {}
        calls = [break_at(scope(rank), breakpoint.message, timeout) for rank in ranks]
        self._deadline = max(call.deadline for call in calls)
        self._readings = AsyncReadings(channels, calls)

    async def __aenter__(self) -> Self:
        """Gives itself."""
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Closes it."""
        await self.close()

    async def close(self) -> None:
        """Removes the breakpoint. What it holds goes on."""
        await self._readings.close()

    async def held(self) -> list[HeldCall]:
        """Gives the calls that the breakpoint holds now, by rank.

        Raises:
            GangError: A rank has not answered.
        """
        calls = [list_held(self._scope(rank)) for rank in self.ranks if rank not in self.ended]
        answers = await self._channels.run_all(calls)
        return [it for held in answers for it in held if self._numbers[it.rank] == it.breakpoint]

    async def wait(self, ranks: int | Iterable[int] | None = None, *, timeout: float) -> list[HeldCall]:
        """Waits until ranks are held.

        Args:
            ranks: How many, or which. None: all on which the breakpoint is set.
            timeout: Longest time, in seconds.

        Returns:
            The calls that they hold, by rank.

        Raises:
            DeadlineExceededError: They were not held in time; says which were.
        """
        wanted = ranks if isinstance(ranks, int) else set(self.ranks if ranks is None else ranks)

        def are_there() -> bool:
            held = {rank for rank, _ in self._held}
            return len(held) >= wanted if isinstance(wanted, int) else wanted <= held

        await self._read(are_there, time.monotonic() + timeout)
        if not are_there():
            held = sorted({rank for rank, _ in self._held})
            raise DeadlineExceededError(
                "the ranks were not held in time",
                operation="hold",
                expected=f"{wanted} ranks" if isinstance(wanted, int) else f"ranks {sorted(wanted)}",
                got=f"ranks {held}" if held else "none",
            )
        return self._calls()

    async def together(self, *, timeout: float) -> list[HeldCall]:
        """Steps ranks until all on which the breakpoint is set are held before the same call.

        A breakpoint that is set while ranks run holds one before a call that another has entered already, and in which
        that one waits. A rank that does not come to any call is not held either: the others are stepped into the call
        in which they wait for it.

        Args:
            timeout: Longest time, in seconds.

        Returns:
            The calls that they hold, by rank.

        Raises:
            DeadlineExceededError: They were not in time; says which were held.
        """
        until, catch_up = time.monotonic() + timeout, CatchUp(self.ranks)
        while True:
            try:
                held = await self.wait(timeout=min(_SETTLE_S, max(0.0, until - time.monotonic())))
            except DeadlineExceededError:
                if time.monotonic() > until:
                    raise
                held = self._calls()
            if catch_up.is_reached(held):
                return held
            await self._release(catch_up.behind(held), "step", "")

    async def changed(self, *, timeout: float) -> list[HeldCall]:
        """Waits until a call is held, or was let go, at most so many seconds. Gives the calls that are held."""
        before = dict(self._held)
        await self._read(lambda: self._held != before, time.monotonic() + timeout)
        return self._calls()

    async def inspect(self, *, start: int = 0, count: int = 0) -> list[Inspection]:
        """Looks at each call that is held: its inputs, and where the user's code is that made it.

        Args:
            start: The first element of each input that is given, in row-major order.
            count: How many, at most 65,536. 0: none.

        Raises:
            InvalidArgumentError: There are no such elements, or too many.
            GangError: A rank has not answered.
        """
        check_elements(start, count)
        held = await self.held()
        calls = [inspect(self._scope(it.rank), it.held_id, start=start, count=count) for it in held]
        return await self._of_held(calls)

    async def differs_at(self, one: int, other: int, *, place: int = 0) -> int | None:
        """Finds where an input of two ranks' held calls differs first, bit for bit.

        Args:
            one: A rank that is held.
            other: Another.
            place: Which input.

        Returns:
            The element, in row-major order. None: they do not differ, as far as both go.

        Raises:
            UnknownOperationError: One of them holds no call.
            InvalidArgumentError: A call has no such input, or one without elements.
        """
        held = {it.rank: it for it in await self.held()}
        start = 0
        while True:
            mine, theirs = [await self._slice(held, rank, place, start) for rank in (one, other)]
            assert mine.slice is not None
            assert theirs.slice is not None
            if (found := differ_at(mine.slice, theirs.slice)) is not None:
                return start + found
            start += MAX_ELEMENTS
            if start >= min(mine.elements, theirs.elements):
                return None

    async def resume(self) -> int:
        """Lets all that is held go on. Gives how many calls that were."""
        return await self._release(await self.held(), "continue", "")

    async def step(self) -> int:
        """Lets all that is held go on, and holds each of these ranks again at its next call, whichever that is."""
        return await self._release(await self.held(), "step", "")

    async def skip(self, message: str = "") -> int:
        """Lets the held calls not be made.

        Operations fail with ``CallCancelledError``, having done nothing; the user's own code goes on with its tensors
        as they are. Others that are not held may wait for these ranks.

        Args:
            message: What the errors say.
        """
        return await self._release(await self.held(), "skip", message)

    async def fail(self, message: str = "") -> int:
        """Lets the held calls fail, without being made.

        Operations fail with ``AbortedError``, having done nothing; in the user's own code, the call raises
        ``rankbridge_server.BreakpointError``.

        Args:
            message: What the errors say.
        """
        return await self._release(await self.held(), "fail", message)

    async def _begin(self) -> Self:
        """Waits until the breakpoint is set on every rank.

        Raises:
            GangError: On some it could not be set. It is set nowhere then.
        """
        try:
            await self._read(lambda: len(self._numbers) == len(self.ranks), time.monotonic() + self._deadline)
            silent = [rank for rank in self.ranks if rank not in self._numbers]
            if silent:
                late = DeadlineExceededError(
                    "the rank did not say that the breakpoint is set", operation="hold"
                )
                self.ended = {rank: self.ended.get(rank) or late for rank in silent}
                raise gang_error([Outcome(rank=rank, error=self.ended.get(rank)) for rank in self.ranks])
        except BaseException:
            await self.close()
            raise
        return self

    async def _read(self, enough: Callable[[], bool], until: float) -> None:
        """Reads what ranks say until it is enough, or the time has come, or no rank says anything more."""
        while not enough() and len(self.ended) < len(self.ranks):
            try:
                said = await self._readings.next(until)
            except TimeoutError:
                return
            if said is None:
                return
            self._take(said)

    def _take(self, said: Said) -> None:
        rank, what = said
        if isinstance(what, BreakpointSet):
            self._numbers[rank] = what.number
        elif isinstance(what, HeldCall):
            self._heard[rank] = what.held_id
            if (rank, what.held_id) not in self._released:
                self._held[rank, what.held_id] = what
        elif isinstance(what, LetGo):
            self._held.pop((rank, what.held_id), None)
            self._released.discard((rank, what.held_id))
        else:
            self.ended[rank] = what
            self._held = {key: it for key, it in self._held.items() if key[0] != rank}

    def _calls(self) -> list[HeldCall]:
        return [self._held[key] for key in sorted(self._held)]

    async def _release(self, held: Sequence[HeldCall], action: LetGoAs, message: str) -> int:
        calls = [release(self._scope(it.rank), it.held_id, action, message) for it in held]
        released = await self._of_held(calls)
        for it in held:
            if self._held.pop((it.rank, it.held_id), None) or it.held_id > self._heard.get(it.rank, 0):
                self._released.add((it.rank, it.held_id))
        return sum(released)

    async def _of_held(self, calls: Sequence[Call[T]]) -> list[T]:
        """What ranks answer on calls that they hold. One that has gone on meanwhile is left out."""
        outcomes = await self._channels.outcomes(calls)
        if any(it.error is not None and not isinstance(it.error, UnknownOperationError) for it in outcomes):
            raise gang_error(outcomes)
        answers: list[Any] = [it.value for it in outcomes if it.error is None]
        return answers

    async def _slice(self, held: dict[int, HeldCall], rank: int, place: int, start: int) -> HeldInput:
        if rank not in held:
            raise UnknownOperationError("the rank holds no call", rank=rank, operation="differs_at")
        held_id = held[rank].held_id
        look = inspect(self._scope(rank), held_id, start=start, count=MAX_ELEMENTS, brief=True)
        return input_at(await self._channels.run(look), place)
