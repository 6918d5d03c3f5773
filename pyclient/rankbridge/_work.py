"""One rank's part of an operation that goes on while the controller does something else."""

from __future__ import annotations

from typing import Any, Generic, TypeVar

from rankbridge._plan import operations as ops
from rankbridge._plan.calls import Call
from rankbridge._plan.status import OperationStatus
from rankbridge._submitted import SubmittedCore
from rankbridge._transport.aio.channels import AsyncChannels
from rankbridge._transport.threads.channels import SyncChannels
from rankbridge.errors import (
    CallCancelledError,
    DeadlineExceededError,
    Outcome,
    RankBridgeError,
    TransportError,
    UnknownOperationError,
)

T = TypeVar("T")

__all__ = ["AsyncWork", "Work", "WorkCore"]


class WorkCore(SubmittedCore, Generic[T]):
    """One rank's part of an operation, and its outcome once that is known here.

    Attributes:
        operation_id: Its id.
        ranks: The rank.
    """

    _outcome: Outcome[T] | None = None

    def _poll(self) -> Call[OperationStatus]:
        (call,) = self._on_members(ops.poll)
        return call

    def _await(self, timeout: float | None) -> Call[Any]:
        (call,) = self._awaits(timeout)
        return call

    def _cancel(self) -> Call[bool]:
        (call,) = self._on_members(ops.cancel)
        return call

    def _ended(self, value: T) -> T:
        """Keeps what the operation gave, and gives it."""
        self._outcome = Outcome(rank=self.ranks[0], value=value)
        return value

    def _failed(self, error: RankBridgeError) -> None:
        """Keeps how the operation failed, unless only the asking for it did."""
        of_asking = TransportError, DeadlineExceededError, UnknownOperationError
        closed = isinstance(error, CallCancelledError) and error.indefinite
        if not (isinstance(error, of_asking) or closed):
            self._outcome = Outcome(rank=self.ranks[0], error=error)

    def _kept(self, outcome: Outcome[T]) -> T:
        """Gives or raises the outcome that is known."""
        if outcome.error is not None:
            raise outcome.error
        value: T = outcome.value  # type: ignore[assignment]
        return value


class Work(WorkCore[T]):
    """What ``Rank.isend`` and ``Rank.irecv`` of each kind began: as ``torch.distributed``'s ``Work``.

    Attributes:
        operation_id: Its id, with which any process can ask for it.
        ranks: The rank.
    """

    def __init__(self, channels: SyncChannels, *args: Any) -> None:
        """Made by ``Rank``."""
        super().__init__(*args)
        self._channels = channels

    def is_complete(self) -> bool:
        """Asks whether it has ended, with a value or with an error; does not wait.

        Raises:
            UnknownOperationError: The rank has forgotten it.
        """
        return self._outcome is not None or self._channels.run(self._poll()).state == "done"

    def wait(self, timeout: float | None = None) -> T:
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
            try:
                return self._ended(self._channels.run(self._await(timeout)))
            except RankBridgeError as error:
                self._failed(error)
                raise
        return self._kept(self._outcome)

    def cancel(self) -> bool:
        """Withdraws it, unless the other member was found already.

        Returns:
            Whether it was withdrawn: then `wait` raises ``CallCancelledError``. False: it goes on, or has ended.
        """
        return self._outcome is None and self._channels.run(self._cancel())


class AsyncWork(WorkCore[T]):
    """As ``Work``: the same methods, to be awaited.

    Attributes:
        operation_id: Its id, with which any process can ask for it.
        ranks: The rank.
    """

    def __init__(self, channels: AsyncChannels, *args: Any) -> None:
        """Made by ``AsyncRank``."""
        super().__init__(*args)
        self._channels = channels

    async def is_complete(self) -> bool:
        """As ``Work.is_complete``."""
        return self._outcome is not None or (await self._channels.run(self._poll())).state == "done"

    async def wait(self, timeout: float | None = None) -> T:
        """As ``Work.wait``."""
        if self._outcome is None:
            try:
                return self._ended(await self._channels.run(self._await(timeout)))
            except RankBridgeError as error:
                self._failed(error)
                raise
        return self._kept(self._outcome)

    async def cancel(self) -> bool:
        """As ``Work.cancel``."""
        return self._outcome is None and await self._channels.run(self._cancel())
