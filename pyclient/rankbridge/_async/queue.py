"""Message queues, for asyncio."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Unpack

from rankbridge._async.front import AsyncGangFront, AsyncRankFront
from rankbridge._plan import operations as ops
from rankbridge._plan import queue_procedures as procedures
from rankbridge._plan.groups import Group
from rankbridge._plan.operations import CallOptions, MemberOptions
from rankbridge._plan.queue import MadeQueue, NamedQueue, QueueCore, QueueDescription

__all__ = ["AsyncGangQueues", "AsyncQueue", "AsyncRankQueues"]


class AsyncQueue(QueueCore):
    """A message queue: what the writer puts in, every reader takes out, in order.

    It belongs to its group and its generation, not to a session. ``**options`` are ``MemberOptions``: `timeout` in
    seconds, `operation_id` (with one, a value is written or taken once, however often it is asked for), `generation`.
    """

    def __init__(self, gang: AsyncGangFront, made: MadeQueue) -> None:
        """Made by ``AsyncGang.new_queue``."""
        super().__init__(made)
        self._gang = gang

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
        return await self._gang._carried_out(
            procedures.broadcasting(self._gang, self._made, value, dict(options))
        )

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


class AsyncGangQueues(AsyncGangFront):
    """How a ``AsyncGang`` makes message queues."""

    async def new_queue(
        self,
        name: str,
        *,
        writer_rank_in_group: int = 0,
        reader_ranks_in_group: Iterable[int] | None = None,
        max_chunk_bytes: int | None = None,
        max_chunks: int | None = None,
        **options: Unpack[CallOptions],
    ) -> AsyncQueue:
        """Makes a message queue, on all members of a group or on none.

        Args:
            name: Its name, 1 to 128 bytes, unique in the group.
            writer_rank_in_group: Who writes.
            reader_ranks_in_group: Who reads. None: all but the writer.
            max_chunk_bytes: Size of the room for one value, in bytes; larger ones travel on their own. None: 4 MiB.
            max_chunks: Values that may be unread by the slowest reader, at most 1,024. None: 6.
            **options: ``CallOptions``.

        Raises:
            GangError: ``NameExistsError``; ``RankOutOfRangeError``; ``InvalidArgumentError``: the writer is to read,
                or a size is too large; ``PeerMissingError``.
        """
        sizes = {"max_chunk_bytes": max_chunk_bytes, "max_chunks": max_chunks}
        readers = None if reader_ranks_in_group is None else tuple(reader_ranks_in_group)
        ends = {"writer_rank_in_group": writer_rank_in_group, "reader_ranks_in_group": readers}
        procedure = procedures.making(self, name, {**options, **ends, **sizes})
        return AsyncQueue(self, await self._carried_out(procedure))

    async def queue(self, name: str, *, group: str | Group = "world") -> AsyncQueue:
        """Gives a queue that is there: also one that another process has made.

        Raises:
            UnknownQueueError: No member of the group knows it.
            GangError: Some member could not be asked.
        """
        return AsyncQueue(self, await self._carried_out(procedures.finding(self, name, group)))

    async def create_mq_broadcaster(
        self,
        writer_rank: int = 0,
        max_chunk_bytes: int = 1 << 22,
        max_chunks: int = 6,
        *,
        name: str | None = None,
        **options: Unpack[CallOptions],
    ) -> AsyncQueue:
        """Makes a queue from one member to all others: `new_queue` under vLLM's name.

        Args:
            writer_rank: Rank in the group that writes.
            max_chunk_bytes: As of `new_queue`.
            max_chunks: As of `new_queue`.
            name: Its name. None: one that nothing else has.
            **options: ``CallOptions``.
        """
        return await self.new_queue(
            procedures.queue_name(name),
            writer_rank_in_group=writer_rank,
            max_chunk_bytes=max_chunk_bytes,
            max_chunks=max_chunks,
            **options,
        )

    async def create_single_reader_mq_broadcasters(
        self,
        reader_rank_in_group: int = 0,
        max_chunk_bytes: int = 1 << 22,
        max_chunks: int = 6,
        *,
        name: str | None = None,
        **options: Unpack[CallOptions],
    ) -> list[AsyncQueue | None]:
        """Makes a queue from each other member to one reader, under vLLM's name: all of them, or none.

        Args:
            reader_rank_in_group: Who reads all of them.
            max_chunk_bytes: As of `new_queue`.
            max_chunks: As of `new_queue`.
            name: What their names begin with, before a slash and the writer's rank in group. None: what nothing else
                has.
            **options: ``CallOptions``.

        Returns:
            By rank in group the queue that the member writes, None at the reader's place.
        """
        sizes = {"max_chunk_bytes": max_chunk_bytes, "max_chunks": max_chunks}
        procedure = procedures.making_for_one_reader(
            self, reader_rank_in_group, procedures.queue_name(name), {**options, **sizes}
        )
        return [
            None if made is None else AsyncQueue(self, made) for made in await self._carried_out(procedure)
        ]


class AsyncRankQueues(AsyncRankFront):
    """What a ``AsyncRank`` does with the queues that it is an end of; what it means, ``AsyncQueue`` tells of each."""

    async def new_queue(
        self,
        name: str,
        *,
        writer_rank_in_group: int = 0,
        reader_ranks_in_group: Iterable[int] | None = None,
        max_chunk_bytes: int | None = None,
        max_chunks: int | None = None,
        **options: Unpack[CallOptions],
    ) -> QueueDescription:
        """Makes a queue; called on every member of the group. See ``AsyncGang.new_queue``."""
        call = ops.new_queue(
            self._scope,
            name,
            writer_rank_in_group=writer_rank_in_group,
            reader_ranks_in_group=reader_ranks_in_group,
            max_chunk_bytes=max_chunk_bytes,
            max_chunks=max_chunks,
            **options,
        )
        return await self._run(call)

    async def enqueue(self, queue: str | NamedQueue, value: object, **options: Unpack[CallOptions]) -> None:
        """Writes a value, as the queue's writer. See ``AsyncQueue.enqueue``.

        Args:
            queue: The queue, or its name in the group of `options`.
            value: Whatever ``to_value`` takes.
            **options: See the class.
        """
        return await self._run(ops.enqueue(self._scope, queue, value, **options))

    async def dequeue(self, queue: str | NamedQueue, **options: Unpack[CallOptions]) -> Any:
        """Reads the next value, as one of the queue's readers. See ``AsyncQueue.dequeue``.

        Args:
            queue: The queue, or its name in the group of `options`.
            **options: See the class.
        """
        return await self._run(ops.dequeue(self._scope, queue, **options))

    async def shut_down_queue(
        self, queue: str | NamedQueue, **options: Unpack[CallOptions]
    ) -> QueueDescription:
        """Ends this rank's end of a queue, and gives it as it was. See ``AsyncQueue.shut_down``.

        Args:
            queue: The queue, or its name in the group of `options`.
            **options: See the class.
        """
        return await self._run(ops.shut_down_queue(self._scope, queue, **options))

    async def queues(self) -> list[QueueDescription]:
        """Describes every queue that this rank has an end of, by group and name."""
        return await self._run(ops.queues(self._scope))
