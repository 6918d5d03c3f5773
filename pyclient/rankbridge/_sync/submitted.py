# Written by scripts/unasync.py from _async/submitted.py: change that file, not this one.
"""Operations of a gang that go on while the controller does something else."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from rankbridge._plan import operations as ops
from rankbridge._plan.calls import MARGIN, Call
from rankbridge._plan.procedures import Finish
from rankbridge._plan.status import OperationStatus
from rankbridge._transport.threads.channels import Channels

T = TypeVar("T")


class Submitted:
    """An operation that was begun with ``Gang.submit``, or is asked for by its id with ``Gang.find``.

    Attributes:
        operation_id: Its id, the same on every member.
        ranks: Ranks of the members, in group order.
    """

    def __init__(
        self,
        channels: Channels,
        finish: Finish,
        operation_id: str,
        ranks: Sequence[int],
        scope: Callable[[int], ops.Scope],
        timeout: float,
    ) -> None:
        """Made by ``Gang``; sends nothing.

        Args:
            channels: The gang's.
            finish: Makes the result of what every member gave.
            operation_id: Its id.
            ranks: Ranks of the members, in group order.
            scope: Gives where a call on a rank is made.
            timeout: Longest time that the operation itself may take until it is admitted, in seconds.
        """
        self.operation_id = operation_id
        self.ranks = tuple(ranks)
        self._channels = channels
        self._finish = finish
        self._scope = scope
        self._timeout = timeout

    def __repr__(self) -> str:
        """Gives id and ranks."""
        return f"{type(self).__name__}({self.operation_id!r}, ranks {list(self.ranks)})"

    def poll(self) -> list[OperationStatus]:
        """Tells how far the operation is on each member, in group order.

        Raises:
            GangError: A rank does not know it (``UnknownOperationError``), or cannot be asked.
        """
        return self._on_members(ops.poll)

    def result(self, timeout: float | None = None) -> list[Any] | None:
        """Waits for the outcome on every member. May be called again, also from another process.

        Args:
            timeout: Longest time to wait, in seconds. None: until the operation's own timeout has passed (for one
                that was found by its id: the gang's), and two seconds more.

        Returns:
            What the direct call gives: a ref, value or None for each member, in group order; None of a barrier. Of
            an operation that was found by its id: what each member gave, or None if no member got anything.

        Raises:
            GangError: The operation failed, as the direct call would; ``DeadlineExceededError`` (a
                ``TimeoutError``): it is not done yet, and goes on; ``UnknownOperationError``.
        """
        # The ranks' verdict on a member that does not come is a moment later than the operation's own timeout.
        seconds = self._timeout + MARGIN if timeout is None else timeout
        return self._finish(self._on_members(ops.await_operation, timeout=seconds))

    def cancel(self) -> list[bool]:
        """Withdraws the operation where it was not admitted yet.

        Returns:
            For each member, in group order: whether it was withdrawn there. False: it was admitted or done already.

        Raises:
            GangError: A rank does not know it (``UnknownOperationError``), or cannot be asked.
        """
        return self._on_members(ops.cancel)

    def _on_members(self, build: Callable[..., Call[T]], **options: Any) -> list[T]:
        calls = [build(self._scope(rank), self.operation_id, **options) for rank in self.ranks]
        return self._channels.run_all(calls)
