"""Message queues, for asyncio."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Unpack

from rankbridge._plan import operations as ops, queue_procedures as procedures
from rankbridge._plan.operations import MemberOptions
from rankbridge._plan.queue import MadeQueue

if TYPE_CHECKING:
    from rankbridge._async.gang import AsyncGang


class AsyncQueue:
    """A message queue: what the writer puts in, every reader takes out, in order.

    It belongs to its group and its generation, not to a session. ``**options`` are ``MemberOptions``: `timeout` in
    seconds, `operation_id` (with one, a value is written or taken once, however often it is asked for), `generation`.

    Attributes:
        description: All that the ranks said of it when it was made.
        name: Its name, unique in its group.
        group: Name of its group.
        ranks: Ranks of the gang that are members of its group, in group order.
        writer_rank_in_group: Who writes.
        reader_ranks_in_group: Who reads, in ascending order.
    """

    def __init__(self, gang: AsyncGang, made: MadeQueue) -> None:
        """Made by ``AsyncGang.new_queue``."""
        self.description = made.description
        self.name = made.description.name
        self.group = made.description.group
        self.ranks = made.ranks
        self.writer_rank_in_group = made.description.writer_rank_in_group
        self.reader_ranks_in_group = made.description.reader_ranks_in_group
        self._made = made
        self._gang = gang

    def __repr__(self) -> str:
        """Gives name, group and who writes and reads."""
        ends = f"writer {self.writer_rank_in_group}, readers {list(self.reader_ranks_in_group)}"
        return f"{type(self).__name__}({self.name!r}, group {self.group!r}, {ends})"

    async def enqueue(self, value: object, **options: Unpack[MemberOptions]) -> None:
        """Writes a value, at the writer; waits while a reader has `max_chunks` unread.

        Args:
            value: Whatever ``to_value`` takes.
            **options: See the class.

        Raises:
            PeerMissingError: Readers, which it names, have not read in time. The value is not in the queue.
            AbortedError: A reader has shut the queue down.
            UnknownQueueError: It was shut down at the writer.
        """
        return await self._gang._channels.run(
            ops.enqueue(self._gang._scope(self._made.writer), self, value, **options)
        )

    async def dequeue(self, rank_in_group: int | None = None, **options: Unpack[MemberOptions]) -> Any:
        """Reads the next value, at a reader; waits until there is one.

        Args:
            rank_in_group: Which reader. None: the only one.
            **options: See the class.

        Raises:
            PeerMissingError: Nothing was written in time. Nothing was read.
            InvalidArgumentError: It is no reader, or there are several.
            AbortedError: The writer has shut the queue down, and all was read.
            UnknownQueueError: It was shut down at this reader.
        """
        return await self._gang._channels.run(
            procedures.dequeuing(self._gang, self._made, rank_in_group, dict(options))
        )

    async def broadcast_object(self, value: object, **options: Unpack[MemberOptions]) -> list[Any]:
        """Writes a value and reads one at every reader, as vLLM's ``MessageQueue.broadcast_object``.

        What was written before and is unread at a reader comes there first.

        Args:
            value: Whatever ``to_value`` takes.
            **options: See the class; `timeout` is for the writing, and again for the reading.

        Returns:
            What every reader got, in the order of `reader_ranks_in_group`.

        Raises:
            GangError: Some reader could not read; the others have read. What the writing can fail with, `enqueue`
                tells.
        """
        await self.enqueue(value, **options)
        scopes = [self._gang._scope(rank) for rank in self._made.readers]
        return await self._gang._channels.run_all([ops.dequeue(it, self, **options) for it in scopes])

    async def shut_down(self, rank_in_group: int | None = None, *, timeout: float | None = None) -> None:
        """Ends the queue: who waits is woken, and the other ends learn of it.

        Args:
            rank_in_group: At which member. None: at all of them, as far as it has not ended there.
            timeout: Longest time, in seconds. None: the gang's default.

        Raises:
            UnknownQueueError: The member has no such queue.
            GangError: Some member could not be reached.
        """
        return await self._gang._carried_out(
            procedures.shutting_down(self._gang, self._made, rank_in_group, timeout)
        )
