"""Collecting all members' tensors, for asyncio."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, Unpack, overload

from rankbridge._async.front import AsyncGangFront, AsyncRankFront
from rankbridge._plan import operations as ops
from rankbridge._plan.operations import CallOptions, GatherLayout
from rankbridge._plan.ref import Ref

__all__ = ["AsyncGangGathers", "AsyncRankGathers"]


class AsyncGangGathers(AsyncGangFront):
    """As ``GangGathers``: what an ``AsyncGang`` does, to be awaited."""

    @overload
    async def gather(
        self,
        refs: Sequence[Ref],
        *,
        dst_rank_in_group: int = 0,
        dim: int | None = None,
        sizes: Sequence[int] | None = None,
        layout: Literal["concatenated", "stacked"] = "concatenated",
        ragged: bool = False,
        **options: Unpack[CallOptions],
    ) -> list[Ref | None]: ...
    @overload
    async def gather(
        self,
        refs: Sequence[Ref],
        *,
        dst_rank_in_group: int = 0,
        dim: int | None = None,
        sizes: Sequence[int] | None = None,
        layout: Literal["list"],
        ragged: bool = False,
        **options: Unpack[CallOptions],
    ) -> list[list[Ref] | None]: ...

    async def gather(
        self,
        refs: Sequence[Ref],
        *,
        dst_rank_in_group: int = 0,
        dim: int | None = None,
        sizes: Sequence[int] | None = None,
        layout: GatherLayout = "concatenated",
        ragged: bool = False,
        **options: Unpack[CallOptions],
    ) -> list[Any]:
        """As ``Gang.gather``."""
        return await self._called(
            "gather",
            refs,
            dst_rank_in_group=dst_rank_in_group,
            dim=dim,
            sizes=sizes,
            layout=layout,
            ragged=ragged,
            **options,
        )

    @overload
    async def all_gather(
        self,
        refs: Sequence[Ref],
        *,
        dim: int | None = None,
        sizes: Sequence[int] | None = None,
        layout: Literal["concatenated", "stacked"] = "concatenated",
        ragged: bool = False,
        **options: Unpack[CallOptions],
    ) -> list[Ref]: ...
    @overload
    async def all_gather(
        self,
        refs: Sequence[Ref],
        *,
        dim: int | None = None,
        sizes: Sequence[int] | None = None,
        layout: Literal["list"],
        ragged: bool = False,
        **options: Unpack[CallOptions],
    ) -> list[list[Ref]]: ...

    async def all_gather(
        self,
        refs: Sequence[Ref],
        *,
        dim: int | None = None,
        sizes: Sequence[int] | None = None,
        layout: GatherLayout = "concatenated",
        ragged: bool = False,
        **options: Unpack[CallOptions],
    ) -> list[Any]:
        """As ``Gang.all_gather``."""
        return await self._called(
            "all_gather", refs, dim=dim, sizes=sizes, layout=layout, ragged=ragged, **options
        )

    async def all_gather_to_list(
        self, refs: Sequence[Ref], **options: Unpack[CallOptions]
    ) -> list[list[Ref]]:
        """As ``Gang.all_gather_to_list``."""
        return await self._called("all_gather", refs, layout="list", **options)


class AsyncRankGathers(AsyncRankFront):
    """As ``RankGathers``: what an ``AsyncRank`` does, to be awaited."""

    async def gather(
        self,
        ref: Ref,
        *,
        dst_rank_in_group: int = 0,
        dim: int | None = None,
        sizes: Sequence[int] | None = None,
        layout: GatherLayout = "concatenated",
        ragged: bool = False,
        **options: Unpack[CallOptions],
    ) -> Any:
        """As ``Rank.gather``."""
        call = ops.gather(
            self._scope,
            ref,
            dst_rank_in_group=dst_rank_in_group,
            dim=dim,
            sizes=sizes,
            layout=layout,
            ragged=ragged,
            **options,
        )
        return await self._run(call)

    @overload
    async def all_gather(
        self,
        ref: Ref,
        *,
        dim: int | None = None,
        sizes: Sequence[int] | None = None,
        layout: Literal["concatenated", "stacked"] = "concatenated",
        ragged: bool = False,
        **options: Unpack[CallOptions],
    ) -> Ref: ...
    @overload
    async def all_gather(
        self,
        ref: Ref,
        *,
        dim: int | None = None,
        sizes: Sequence[int] | None = None,
        layout: Literal["list"],
        ragged: bool = False,
        **options: Unpack[CallOptions],
    ) -> list[Ref]: ...

    async def all_gather(
        self,
        ref: Ref,
        *,
        dim: int | None = None,
        sizes: Sequence[int] | None = None,
        layout: GatherLayout = "concatenated",
        ragged: bool = False,
        **options: Unpack[CallOptions],
    ) -> Any:
        """As ``Rank.all_gather``."""
        call = ops.all_gather(self._scope, ref, dim=dim, sizes=sizes, layout=layout, ragged=ragged, **options)
        return await self._run(call)
