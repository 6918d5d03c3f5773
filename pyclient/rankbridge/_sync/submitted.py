# Written by scripts/unasync.py from _async/submitted.py: change that file, not this one.
"""Operations of a gang that go on while the controller does something else."""

from __future__ import annotations

from typing import Any

from rankbridge._plan import operations as ops
from rankbridge._plan.procedures import Finish
from rankbridge._plan.status import OperationStatus
from rankbridge._plan.submitted import SubmittedCore
from rankbridge._transport.threads.channels import Channels


class Submitted(SubmittedCore):
    """An operation that was begun with ``Gang.submit``, or is asked for by its id with ``Gang.find``.

    Attributes:
        operation_id: Its id, the same on every member.
        ranks: Ranks of the members, in group order.
    """

    def __init__(self, channels: Channels, finish: Finish, *args: Any) -> None:
        """Made by ``Gang``. `finish` makes the result of what every member gave."""
        super().__init__(*args)
        self._channels = channels
        self._finish = finish

    def poll(self) -> list[OperationStatus]:
        """Tells how far the operation is on each member, in group order.

        Raises:
            GangError: A rank does not know it (``UnknownOperationError``), or cannot be asked.
        """
        return self._channels.run_all(self._on_members(ops.poll))

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
        return self._finish(self._channels.run_all(self._awaits(timeout)))

    def cancel(self) -> list[bool]:
        """Withdraws the operation where it was not admitted yet.

        Returns:
            For each member, in group order: whether it was withdrawn there. False: it was admitted or done already.

        Raises:
            GangError: A rank does not know it (``UnknownOperationError``), or cannot be asked.
        """
        return self._channels.run_all(self._on_members(ops.cancel))
