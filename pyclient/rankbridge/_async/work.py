"""One rank's part of an operation that goes on while the controller does something else."""

from __future__ import annotations

from typing import Any, TypeVar

from rankbridge._plan.work import WorkCore
from rankbridge._transport.aio.channels import AsyncChannels
from rankbridge.errors import RankBridgeError

T = TypeVar("T")


class AsyncWork(WorkCore[T]):
    """What ``AsyncRank.isend`` and ``AsyncRank.irecv`` of each kind began: as ``torch.distributed``'s ``AsyncWork``.

    Attributes:
        operation_id: Its id, with which any process can ask for it.
        ranks: The rank.
    """

    def __init__(self, channels: AsyncChannels, *args: Any) -> None:
        """Made by ``AsyncRank``."""
        super().__init__(*args)
        self._channels = channels

    async def is_complete(self) -> bool:
        """Asks whether it has ended, with a value or with an error; does not wait.

        Raises:
            UnknownOperationError: The rank has forgotten it.
        """
        return self._outcome is not None or (await self._channels.run(self._poll())).state == "done"

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
            try:
                return self._ended(await self._channels.run(self._await(timeout)))
            except RankBridgeError as error:
                self._failed(error)
                raise
        return self._kept(self._outcome)

    async def cancel(self) -> bool:
        """Withdraws it, unless the other member was found already.

        Returns:
            Whether it was withdrawn: then `wait` raises ``CallCancelledError``. False: it goes on, or has ended.
        """
        return self._outcome is None and await self._channels.run(self._cancel())
