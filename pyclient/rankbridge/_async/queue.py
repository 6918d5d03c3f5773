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
    """As ``Queue``: the same methods, to be awaited."""

    def __init__(self, gang: AsyncGangFront, made: MadeQueue) -> None:
        """Made by ``AsyncGang.new_queue``."""
        super().__init__(made)
        self._gang = gang

    async def enqueue(self, value: object, **options: Unpack[MemberOptions]) -> None:
        """As ``Queue.enqueue``."""
        return await self._gang._channels.run(
            ops.enqueue(self._gang._scope(self._made.writer), self, value, **options)
        )

    async def dequeue(self, rank_in_group: int | None = None, **options: Unpack[MemberOptions]) -> Any:
        """As ``Queue.dequeue``."""
        return await self._gang._channels.run(
            procedures.dequeuing(self._gang, self._made, rank_in_group, dict(options))
        )

    async def broadcast_object(self, value: object, **options: Unpack[MemberOptions]) -> list[Any]:
        """As ``Queue.broadcast_object``."""
        return await self._gang._carried_out(
            procedures.broadcasting(self._gang, self._made, value, dict(options))
        )

    async def shut_down(self, rank_in_group: int | None = None, *, timeout: float | None = None) -> None:
        """As ``Queue.shut_down``."""
        return await self._gang._carried_out(
            procedures.shutting_down(self._gang, self._made, rank_in_group, timeout)
        )


class AsyncGangQueues(AsyncGangFront):
    """As ``GangQueues``: what an ``AsyncGang`` does, to be awaited."""

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
        """As ``Gang.new_queue``."""
        sizes = {"max_chunk_bytes": max_chunk_bytes, "max_chunks": max_chunks}
        readers = None if reader_ranks_in_group is None else tuple(reader_ranks_in_group)
        ends = {"writer_rank_in_group": writer_rank_in_group, "reader_ranks_in_group": readers}
        procedure = procedures.making(self, name, {**options, **ends, **sizes})
        return AsyncQueue(self, await self._carried_out(procedure))

    async def queue(self, name: str, *, group: str | Group = "world") -> AsyncQueue:
        """As ``Gang.queue``."""
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
        """As ``Gang.create_mq_broadcaster``."""
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
        """As ``Gang.create_single_reader_mq_broadcasters``."""
        sizes = {"max_chunk_bytes": max_chunk_bytes, "max_chunks": max_chunks}
        procedure = procedures.making_for_one_reader(
            self, reader_rank_in_group, procedures.queue_name(name), {**options, **sizes}
        )
        return [
            None if made is None else AsyncQueue(self, made) for made in await self._carried_out(procedure)
        ]


class AsyncRankQueues(AsyncRankFront):
    """As ``RankQueues``: what an ``AsyncRank`` does, to be awaited."""

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
        """As ``Rank.new_queue``."""
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
        """As ``Rank.enqueue``."""
        return await self._run(ops.enqueue(self._scope, queue, value, **options))

    async def dequeue(self, queue: str | NamedQueue, **options: Unpack[CallOptions]) -> Any:
        """As ``Rank.dequeue``."""
        return await self._run(ops.dequeue(self._scope, queue, **options))

    async def shut_down_queue(
        self, queue: str | NamedQueue, **options: Unpack[CallOptions]
    ) -> QueueDescription:
        """As ``Rank.shut_down_queue``."""
        return await self._run(ops.shut_down_queue(self._scope, queue, **options))

    async def queues(self) -> list[QueueDescription]:
        """As ``Rank.queues``."""
        return await self._run(ops.queues(self._scope))
