"""Collectives on values by value and on maps of tensors, for asyncio."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Unpack

from rankbridge._async.front import AsyncGangFront, AsyncRankFront
from rankbridge._plan import operations as ops
from rankbridge._plan import procedures as procedures
from rankbridge._plan.groups import Group
from rankbridge._plan.operations import CallOptions, ReduceOp

__all__ = ["AsyncGangObjects", "AsyncRankObjects"]


class AsyncGangObjects(AsyncGangFront):
    """As ``GangObjects``: what an ``AsyncGang`` does, to be awaited."""

    async def broadcast_object(
        self, value: object, *, src_rank_in_group: int = 0, **options: Unpack[CallOptions]
    ) -> list[Any]:
        """As ``Gang.broadcast_object``."""
        return await self._called("broadcast_object", value, src_rank_in_group=src_rank_in_group, **options)

    async def broadcast_object_list(
        self, values: Sequence[object], *, src_rank_in_group: int = 0, **options: Unpack[CallOptions]
    ) -> list[list[Any]]:
        """As ``Gang.broadcast_object_list``."""
        listed = ops.checked_list("broadcast_object_list", values)
        return await self._called("broadcast_object", listed, src_rank_in_group=src_rank_in_group, **options)

    async def scatter_object(
        self, values: Sequence[object], *, src_rank_in_group: int = 0, **options: Unpack[CallOptions]
    ) -> list[Any]:
        """As ``Gang.scatter_object``."""
        return await self._called("scatter_object", values, src_rank_in_group=src_rank_in_group, **options)

    async def gather_object(
        self, values: Sequence[object], *, dst_rank_in_group: int = 0, **options: Unpack[CallOptions]
    ) -> list[list[Any] | None]:
        """As ``Gang.gather_object``."""
        return await self._called("gather_object", values, dst_rank_in_group=dst_rank_in_group, **options)

    async def all_gather_object(
        self, values: Sequence[object], **options: Unpack[CallOptions]
    ) -> list[list[Any]]:
        """As ``Gang.all_gather_object``."""
        return await self._called("all_gather_object", values, **options)

    async def all_reduce_value(
        self, values: Sequence[float], *, op: ReduceOp = "sum", **options: Unpack[CallOptions]
    ) -> list[Any]:
        """As ``Gang.all_reduce_value``."""
        return await self._called("all_reduce_value", values, op=op, **options)

    async def broadcast_tensor_dict(
        self,
        tensors: Mapping[Any, Any],
        *,
        src_rank_in_group: int = 0,
        metadata_group: str | Group | None = None,
        **options: Unpack[CallOptions],
    ) -> list[dict[Any, Any]]:
        """As ``Gang.broadcast_tensor_dict``."""
        return await self._carried_out(
            procedures.broadcasting_tensor_dict(
                self, tensors, metadata_group, {**options, "src_rank_in_group": src_rank_in_group}
            )
        )

    async def all_gather_objects(
        self, values: Sequence[object], **options: Unpack[CallOptions]
    ) -> list[list[Any]]:
        """As ``Gang.all_gather_objects``."""
        return await self._called("all_gather_object", values, **options)

    async def broadcast_objects(
        self, values: Sequence[object], *, src_rank_in_group: int = 0, **options: Unpack[CallOptions]
    ) -> list[list[Any]]:
        """As ``Gang.broadcast_objects``."""
        listed = ops.checked_list("broadcast_objects", values)
        return await self._called("broadcast_object", listed, src_rank_in_group=src_rank_in_group, **options)


class AsyncRankObjects(AsyncRankFront):
    """As ``RankObjects``: what an ``AsyncRank`` does, to be awaited."""

    async def broadcast_object(
        self, value: object = None, *, src_rank_in_group: int = 0, **options: Unpack[CallOptions]
    ) -> Any:
        """As ``Rank.broadcast_object``."""
        call = ops.broadcast_object(self._scope, value, src_rank_in_group=src_rank_in_group, **options)
        return await self._run(call)

    async def broadcast_object_list(
        self,
        values: Sequence[object] | None = None,
        *,
        src_rank_in_group: int = 0,
        **options: Unpack[CallOptions],
    ) -> list[Any]:
        """As ``Rank.broadcast_object_list``."""
        given = None if values is None else ops.checked_list("broadcast_object_list", values)
        call = ops.broadcast_object(self._scope, given, src_rank_in_group=src_rank_in_group, **options)
        listed: list[Any] = await self._run(call)
        return listed

    async def scatter_object(
        self,
        values: Sequence[object] | None = None,
        *,
        src_rank_in_group: int = 0,
        **options: Unpack[CallOptions],
    ) -> Any:
        """As ``Rank.scatter_object``."""
        call = ops.scatter_object(self._scope, values, src_rank_in_group=src_rank_in_group, **options)
        return await self._run(call)

    async def gather_object(
        self, value: object, *, dst_rank_in_group: int = 0, **options: Unpack[CallOptions]
    ) -> list[Any] | None:
        """As ``Rank.gather_object``."""
        call = ops.gather_object(self._scope, value, dst_rank_in_group=dst_rank_in_group, **options)
        return await self._run(call)

    async def all_gather_object(self, value: object, **options: Unpack[CallOptions]) -> list[Any]:
        """As ``Rank.all_gather_object``."""
        return await self._run(ops.all_gather_object(self._scope, value, **options))

    async def all_reduce_value(
        self, value: float, *, op: ReduceOp = "sum", **options: Unpack[CallOptions]
    ) -> Any:
        """As ``Rank.all_reduce_value``."""
        return await self._run(ops.all_reduce_value(self._scope, value, op=op, **options))

    async def broadcast_tensor_dict(
        self,
        tensors: Mapping[Any, Any] | None = None,
        *,
        src_rank_in_group: int = 0,
        **options: Unpack[CallOptions],
    ) -> dict[Any, Any]:
        """As ``Rank.broadcast_tensor_dict``."""
        call = ops.broadcast_tensor_dict(self._scope, tensors, src_rank_in_group=src_rank_in_group, **options)
        return await self._run(call)
