"""The collectives of a gang on tensors, for asyncio."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Unpack

from rankbridge._async.front import AsyncGangFront
from rankbridge._plan import operations as ops
from rankbridge._plan.operations import CallOptions, ReduceOp
from rankbridge._plan.ref import Ref

__all__ = ["AsyncGangCollectives"]


class AsyncGangCollectives(AsyncGangFront):
    """What an ``AsyncGang`` does with one tensor of each member: as ``Gang``, to be awaited."""

    async def broadcast(
        self,
        refs: Sequence[Ref],
        *,
        src_rank_in_group: int = 0,
        in_place: bool = False,
        **options: Unpack[CallOptions],
    ) -> list[Ref]:
        """As ``Gang.broadcast``."""
        calls = self._on_refs(
            refs, ops.broadcast, src_rank_in_group=src_rank_in_group, in_place=in_place, **options
        )
        return await self._channels.run_all(calls)

    async def scatter(
        self,
        refs: Sequence[Ref],
        *,
        src_rank_in_group: int = 0,
        dim: int = 0,
        **options: Unpack[CallOptions],
    ) -> list[Ref]:
        """As ``Gang.scatter``."""
        calls = self._on_refs(refs, ops.scatter, src_rank_in_group=src_rank_in_group, dim=dim, **options)
        return await self._channels.run_all(calls)

    async def reduce(
        self,
        refs: Sequence[Ref],
        *,
        op: ReduceOp = "sum",
        dst_rank_in_group: int = 0,
        **options: Unpack[CallOptions],
    ) -> list[Ref | None]:
        """As ``Gang.reduce``."""
        calls = self._on_refs(refs, ops.reduce, op=op, dst_rank_in_group=dst_rank_in_group, **options)
        return await self._channels.run_all(calls)

    async def all_reduce(
        self,
        refs: Sequence[Ref],
        *,
        op: ReduceOp = "sum",
        in_place: bool = False,
        **options: Unpack[CallOptions],
    ) -> list[Ref]:
        """As ``Gang.all_reduce``."""
        return await self._channels.run_all(
            self._on_refs(refs, ops.all_reduce, op=op, in_place=in_place, **options)
        )

    async def reduce_scatter(
        self,
        refs: Sequence[Ref],
        *,
        op: ReduceOp = "sum",
        dim: int = -1,
        sizes: Sequence[int] | None = None,
        **options: Unpack[CallOptions],
    ) -> list[Ref]:
        """As ``Gang.reduce_scatter``."""
        calls = self._on_refs(refs, ops.reduce_scatter, op=op, dim=dim, sizes=sizes, **options)
        return await self._channels.run_all(calls)

    async def all_to_all(
        self,
        refs: Sequence[Ref],
        *,
        dim: int = 0,
        sizes: Sequence[Sequence[int]] | None = None,
        **options: Unpack[CallOptions],
    ) -> list[Ref]:
        """As ``Gang.all_to_all``."""
        return await self._channels.run_all(
            self._on_refs(refs, ops.all_to_all, dim=dim, sizes=sizes, **options)
        )

    async def scan(
        self,
        refs: Sequence[Ref],
        *,
        op: ReduceOp = "sum",
        exclusive: bool = False,
        **options: Unpack[CallOptions],
    ) -> list[Ref]:
        """As ``Gang.scan``."""
        return await self._called("scan", refs, op=op, exclusive=exclusive, **options)
