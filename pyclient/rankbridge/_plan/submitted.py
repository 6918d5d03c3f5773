"""An operation of a gang by its id. No I/O."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from rankbridge._plan import operations as ops
from rankbridge._plan.calls import MARGIN, Call

T = TypeVar("T")


class SubmittedCore:
    """One operation, by its id, on every member of its group.

    Attributes:
        operation_id: Its id, the same on every member.
        ranks: Ranks of the members, in group order.
    """

    def __init__(
        self, operation_id: str, ranks: Sequence[int], scope: Callable[[int], ops.Scope], timeout: float
    ) -> None:
        """Knows the operation; sends nothing.

        Args:
            operation_id: Its id.
            ranks: Ranks of the members, in group order.
            scope: Gives where a call on a rank is made.
            timeout: Longest time that the operation itself may take until it is admitted, in seconds.
        """
        self.operation_id = operation_id
        self.ranks = tuple(ranks)
        self._scope = scope
        self._timeout = timeout

    def __repr__(self) -> str:
        """Gives id and ranks."""
        return f"{type(self).__name__}({self.operation_id!r}, ranks {list(self.ranks)})"

    def _on_members(self, build: Callable[..., Call[T]], **options: Any) -> list[Call[T]]:
        return [build(self._scope(rank), self.operation_id, **options) for rank in self.ranks]

    def _awaits(self, timeout: float | None) -> list[Call[Any]]:
        # The ranks' verdict on a member that does not come is a moment later than the operation's own timeout.
        seconds = self._timeout + MARGIN if timeout is None else timeout
        return self._on_members(ops.await_operation, timeout=seconds)
