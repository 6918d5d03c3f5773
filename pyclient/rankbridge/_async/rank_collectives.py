"""The collectives of one rank on tensors, for asyncio."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Unpack

from rankbridge._async.front import AsyncRankFront
from rankbridge._plan import operations as ops
from rankbridge._plan.operations import CallOptions, ReduceOp
from rankbridge._plan.ref import Ref

__all__ = ["AsyncRankCollectives"]


class AsyncRankCollectives(AsyncRankFront):
    """What an ``AsyncRank`` does with its own tensor as a member of a group: as ``Rank``, to be awaited."""

    async def barrier(self, **options: Unpack[CallOptions]) -> None:
        """As ``Rank.barrier``."""
        return await self._run(ops.barrier(self._scope, **options))

    async def broadcast(
        self, ref: Ref, *, src_rank_in_group: int = 0, in_place: bool = False, **options: Unpack[CallOptions]
    ) -> Ref:
        """As ``Rank.broadcast``."""
        call = ops.broadcast(
            self._scope, ref, src_rank_in_group=src_rank_in_group, in_place=in_place, **options
        )
        return await self._run(call)

    async def scatter(
        self, ref: Ref, *, src_rank_in_group: int = 0, dim: int = 0, **options: Unpack[CallOptions]
    ) -> Ref:
        """As ``Rank.scatter``."""
        call = ops.scatter(self._scope, ref, src_rank_in_group=src_rank_in_group, dim=dim, **options)
        return await self._run(call)

    async def reduce(
        self,
        ref: Ref,
        *,
        op: ReduceOp = "sum",
        dst_rank_in_group: int = 0,
        **options: Unpack[CallOptions],
    ) -> Ref | None:
        """As ``Rank.reduce``."""
        call = ops.reduce(self._scope, ref, op=op, dst_rank_in_group=dst_rank_in_group, **options)
        return await self._run(call)

    async def all_reduce(
        self, ref: Ref, *, op: ReduceOp = "sum", in_place: bool = False, **options: Unpack[CallOptions]
    ) -> Ref:
        """As ``Rank.all_reduce``."""
        return await self._run(ops.all_reduce(self._scope, ref, op=op, in_place=in_place, **options))

    async def reduce_scatter(
        self,
        ref: Ref,
        *,
        op: ReduceOp = "sum",
        dim: int = -1,
        sizes: Sequence[int] | None = None,
        **options: Unpack[CallOptions],
    ) -> Ref:
        """As ``Rank.reduce_scatter``."""
        call = ops.reduce_scatter(self._scope, ref, op=op, dim=dim, sizes=sizes, **options)
        return await self._run(call)

    async def all_to_all(
        self,
        ref: Ref,
        *,
        dim: int = 0,
        input_sizes: Sequence[int] | None = None,
        output_sizes: Sequence[int] | None = None,
        **options: Unpack[CallOptions],
    ) -> Ref:
        """As ``Rank.all_to_all``."""
        call = ops.all_to_all(
            self._scope, ref, dim=dim, input_sizes=input_sizes, output_sizes=output_sizes, **options
        )
        return await self._run(call)

    async def scan(
        self, ref: Ref, *, op: ReduceOp = "sum", exclusive: bool = False, **options: Unpack[CallOptions]
    ) -> Ref:
        """As ``Rank.scan``."""
        return await self._run(ops.scan(self._scope, ref, op=op, exclusive=exclusive, **options))
