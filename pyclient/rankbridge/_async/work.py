"""One rank's part of an operation that goes on while the controller does something else."""

from __future__ import annotations

from typing import Generic, TypeVar

from rankbridge._plan import operations as ops
from rankbridge._plan.calls import MARGIN
from rankbridge._transport.aio.channels import AsyncChannels
from rankbridge.errors import (
    CallCancelledError,
    DeadlineExceededError,
    Outcome,
    RankBridgeError,
    TransportError,
    UnknownOperationError,
)

T = TypeVar("T")


class AsyncWork(Generic[T]):
    """What ``AsyncRank.isend`` and ``AsyncRank.irecv`` of each kind began: as ``torch.distributed``'s ``AsyncWork``.

    Attributes:
        operation_id: Its id, with which any process can ask for it.
        ranks: The rank.
    """

    def __init__(self, channels: AsyncChannels, operation_id: str, scope: ops.Scope, timeout: float) -> None:
        """Made by ``AsyncRank``. `timeout`: the operation's own, in seconds."""
        self.operation_id = operation_id
        self.ranks = (scope.rank,)
        self._channels = channels
        self._scope = scope
        self._timeout = timeout
        self._outcome: Outcome[T] | None = None

    def __repr__(self) -> str:
        """Gives id and rank."""
        return f"{type(self).__name__}({self.operation_id!r}, ranks {list(self.ranks)})"

    async def is_complete(self) -> bool:
        """Asks whether it has ended, with a value or with an error; does not wait.

        Raises:
            UnknownOperationError: The rank has forgotten it.
        """
        if self._outcome is not None:
            return True
        return (await self._channels.run(ops.poll(self._scope, self.operation_id))).state == "done"

    async def wait(self, timeout: float | None = None) -> T:
        """Waits for the end, and gives or raises the outcome. The second time it gives the same.

        Args:
            timeout: Longest time to wait, in seconds. None: until the operation's own timeout has passed, and two
                seconds more.

        Returns:
            What the direct call gives.

        Raises:
            RankBridgeError: It failed, as the direct call would.
            DeadlineExceededError: It has not ended yet, and goes on.
        """
        if self._outcome is None:
            seconds = self._timeout + MARGIN if timeout is None else timeout
            call = ops.await_operation(self._scope, self.operation_id, timeout=seconds)
            try:
                self._outcome = Outcome(rank=call.rank, value=await self._channels.run(call))
            except RankBridgeError as error:
                if not _of_asking(error):
                    self._outcome = Outcome(rank=call.rank, error=error)
                raise
        if self._outcome.error is not None:
            raise self._outcome.error
        value: T = self._outcome.value  # type: ignore[assignment]
        return value

    async def cancel(self) -> bool:
        """Withdraws it, unless the other member was found already.

        Returns:
            Whether it was withdrawn: then `wait` raises ``CallCancelledError``. False: it goes on, or has ended.
        """
        if self._outcome is not None:
            return False
        return await self._channels.run(ops.cancel(self._scope, self.operation_id))


def _of_asking(error: RankBridgeError) -> bool:
    """Says whether only the asking for an operation failed, and not the operation."""
    closed = isinstance(error, CallCancelledError) and error.indefinite
    return closed or isinstance(error, TransportError | DeadlineExceededError | UnknownOperationError)
