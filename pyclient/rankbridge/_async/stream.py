"""A stream of a gang's operations: the next is on its way while one runs."""

from __future__ import annotations

import contextlib
from collections import deque
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from rankbridge._plan import operations as ops
from rankbridge._plan.gang_calls import Joined, joined
from rankbridge._plan.gang_core import all_values
from rankbridge._plan.groups import Group
from rankbridge._plan.procedures import Finish, finishing, member_calls, members_for
from rankbridge._transport.aio.channels import AsyncChannels
from rankbridge._transport.aio.lock import AsyncLock
from rankbridge._transport.aio.pending import AsyncPending
from rankbridge._transport.streams import RankStream
from rankbridge.errors import GangError, InvalidArgumentError, Outcome

if TYPE_CHECKING:
    from rankbridge._async.gang import AsyncGang

_MOST_UNDER_WAY = 256
"""Operations of one stream. A rank reads no further when it has as many."""


class AsyncStreamed:
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
        self.operation = gang_call.call.kind
        self.operation_id = gang_call.call.operation_id
        self.ranks = tuple(gang_call.each.ranks)
        self._channels = channels
        self._gang_call = gang_call
        self._pending = pending
        self._finish = finish
        # As long as that may be under way: this counts as answered no earlier.
        self._before = before
        self._told: list[Outcome[Any]] | None = None

    def __repr__(self) -> str:
        """Gives operation, id and ranks."""
        return f"{type(self).__name__}({self.operation}, {self.operation_id!r}, ranks {list(self.ranks)})"

    def done(self) -> bool:
        """Says whether it is answered: whether `result` would wait."""
        if not self._pending.done() or not all(it._pending.done() for it in self._before_this()):
            return False
        self._before = None
        return True

    def cancel(self) -> None:
        """Withdraws it wherever it was not admitted yet. It is answered all the same."""
        if not self.done():
            self._pending._withdraw()

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

    def _before_this(self) -> list[AsyncStreamed]:
        """Gives those before it that may be under way, the first first."""
        earlier: deque[AsyncStreamed] = deque()
        before = self._before
        while before is not None:
            earlier.appendleft(before)
            before = before._before
        return list(earlier)

    def _went_well(self) -> bool:
        """Whether no member has failed, once it is answered."""
        try:
            outcomes = self._pending._ended()
        except Exception:
            return False
        return all(outcome is None or outcome.error is None for outcome in outcomes)


class AsyncGangStream:
    """Operations of one group that are sent one after another, and answered in that order, each as soon as it is done.

    To be used as a context manager. At its end it waits for all that was begun, and raises the first failure that
    neither `Streamed.result` nor `Streamed.outcomes` has raised. If its block fails, what was not admitted is
    withdrawn. Thread-safe.

    Attributes:
        group: The group, or its name.
    """

    def __init__(self, gang: AsyncGang, group: str | Group) -> None:
        """Made by ``AsyncGang.stream``."""
        self.group = group
        self._gang = gang
        self._lock = AsyncLock()
        self._stream: RankStream | None = None
        self._last: AsyncStreamed | None = None
        # Those whose failure was not raised yet, and those under way.
        self._failed: list[AsyncStreamed] = []
        self._begun: deque[AsyncStreamed] = deque()
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
        gang_call = await self._joined(operation, given, options)
        finish = finishing(operation, given)
        with self._lock:
            if self._closed:
                raise InvalidArgumentError("the stream is closed", operation=operation)
            pending = gang._channels.send_by(self._stream, gang_call.call)
            self._stream = pending._stream
            streamed = AsyncStreamed(gang._channels, gang_call, pending, finish, self._last)
            self._last = streamed
            self._begun.append(streamed)
            self._look_after_ended()
            oldest = self._begun[0] if len(self._begun) >= _MOST_UNDER_WAY else None
        if oldest is not None:
            await oldest._pending._wait()
        return streamed

    async def close(self) -> None:
        """Waits for all that was begun; raises as leaving the block does. Nothing can be submitted any more.

        What interrupts the waiting withdraws all that was not admitted.

        Raises:
            GangError: The first failure that was not raised before.
        """
        with self._lock:
            self._closed = True
            begun = self._unreported
            self._failed, self._begun = [], deque()
            stream, self._stream, self._last = self._stream, None, None
        try:
            failures = [error for it in begun if (error := await _unraised(it)) is not None]
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
            begun = self._unreported
        _withdraw(begun)
        with contextlib.suppress(GangError):
            await self.close()

    async def _joined(self, operation: str, given: Any, options: dict[str, Any]) -> Joined[Any]:
        """Makes the gang call of an operation."""
        if options.keys() & {"group", "calls"}:
            raise InvalidArgumentError(
                "a stream is of one group, and of gang calls", expected="no group, no calls", got=str(options)
            )
        options = {**options, "group": self.group, "calls": "gang"}
        members = await self._gang._carried_out(members_for(self._gang, operation, given, options))
        build = ops.ping if operation == "ping" else ops.find_operation(operation)
        gang_call = joined(member_calls(self._gang, operation, build, given, members, options))
        if gang_call is None:
            raise InvalidArgumentError(
                "it does not go as a gang call",
                group=ops.group_name(self.group),
                operation=operation,
                expected="a collective that is small enough, on refs of one session",
            )
        return gang_call

    @property
    def _unreported(self) -> list[AsyncStreamed]:
        """Those that need somebody's attention, in the order in which they were sent."""
        return [*self._failed, *self._begun]

    def _look_after_ended(self) -> None:
        while self._begun and self._begun[0].done():
            first = self._begun.popleft()
            # Of so many failures the first that was not raised is there at the end, or all of them were raised.
            if first._told is None and not first._went_well() and len(self._failed) < _MOST_UNDER_WAY:
                self._failed.append(first)


async def _unraised(streamed: AsyncStreamed) -> GangError | None:
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
