"""Streams of a gang's operations, for the sync and the async front. No I/O."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from typing import Any, Generic, Protocol, TypeVar

from rankbridge._plan import operations as ops
from rankbridge._plan.gang_calls import Joined, joined
from rankbridge._plan.gang_core import GangCore
from rankbridge._plan.groups import Group
from rankbridge._plan.operations import group_name
from rankbridge._plan.procedures import Finish, Procedure, finishing, member_calls, members_for
from rankbridge.errors import InvalidArgumentError, Outcome

MOST_UNDER_WAY = 256
"""Operations of one stream. A rank reads no further when it has as many."""


class Sent(Protocol):
    """What was sent, and may not be answered."""

    def done(self) -> bool: ...

    def _wait(self) -> Any: ...

    def _withdraw(self) -> None: ...

    def _ended(self) -> Sequence[Outcome[Any] | None]: ...


def streaming(
    gang: GangCore[Any], group: str | Group, operation: str, given: Any, options: dict[str, Any]
) -> Procedure[tuple[Joined[Any], Finish]]:
    """Makes the gang call of an operation, and what makes its result of the members'.

    Raises:
        InvalidArgumentError: There is no such operation, or it is no gang call.
    """
    if options.keys() & {"group", "calls"}:
        raise InvalidArgumentError(
            "a stream is of one group, and of gang calls", expected="no group, no calls", got=str(options)
        )
    options = {**options, "group": group, "calls": "gang"}
    members = yield from members_for(gang, operation, given, options)
    build = ops.ping if operation == "ping" else ops.find_operation(operation)
    gang_call = joined(member_calls(gang, operation, build, given, members, options))
    if gang_call is None:
        raise InvalidArgumentError(
            "it does not go as a gang call",
            group=group_name(group),
            operation=operation,
            expected="a collective that is small enough, on refs of one session",
        )
    return gang_call, finishing(operation, given)


class StreamedCore:
    """An operation that was sent by a stream.

    Attributes:
        operation: Kind of operation.
        operation_id: Its id, the same on every member.
        ranks: Ranks of the members, in group order.
    """

    def __init__(
        self, gang_call: Joined[Any], finish: Finish, pending: Sent, before: StreamedCore | None
    ) -> None:
        """Knows the operation. `finish` makes the result of what every member gave."""
        self.operation = gang_call.call.kind
        self.operation_id = gang_call.call.operation_id
        self.ranks = tuple(gang_call.each.ranks)
        self._gang_call = gang_call
        self._finish = finish
        self._pending = pending
        # What was sent before it, as long as that may be under way: it counts as answered no earlier than that.
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

    def _before_this(self) -> list[StreamedCore]:
        """Gives those before it that may be under way, the first first."""
        earlier: deque[StreamedCore] = deque()
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


S = TypeVar("S", bound=StreamedCore)


class Unreported(Generic[S]):
    """Operations of a stream that need somebody's attention: under way, or failed and not raised yet."""

    def __init__(self) -> None:
        """None yet."""
        self._begun: deque[S] = deque()
        self._failed: list[S] = []

    def __iter__(self) -> Iterator[S]:
        """Gives them in the order in which they were sent."""
        return iter([*self._failed, *self._begun])

    def add(self, streamed: S) -> S | None:
        """Adds what was sent last. Gives one to wait for before the next is sent, where very many are under way."""
        begun, failed = self._begun, self._failed
        begun.append(streamed)
        while begun and begun[0].done():
            first = begun.popleft()
            # Of so many failures the first that was not raised is there at the end, or all of them were raised.
            if first._told is None and not first._went_well() and len(failed) < MOST_UNDER_WAY:
                failed.append(first)
        return begun[0] if len(begun) >= MOST_UNDER_WAY else None

    def take(self) -> list[S]:
        """Gives them all, and has none any more."""
        taken = list(self)
        self._begun, self._failed = deque(), []
        return taken
