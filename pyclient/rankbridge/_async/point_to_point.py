"""What one member of a group sends to another, for asyncio."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Unpack

from rankbridge._async.front import AsyncRankFront
from rankbridge._plan import operations as ops
from rankbridge._plan.gang_core import with_id
from rankbridge._plan.operations import CallOptions, Expected
from rankbridge._plan.ref import Ref
from rankbridge._work import AsyncWork
from rankbridge.errors import RankBridgeError

__all__ = ["AsyncRankPointToPoint"]


class AsyncRankPointToPoint(AsyncRankFront):
    """As ``RankPointToPoint``: what an ``AsyncRank`` does, to be awaited."""

    async def send(
        self, ref: Ref, *, dst_rank_in_group: int, tag: int = 0, **options: Unpack[CallOptions]
    ) -> None:
        """As ``Rank.send``."""
        call = ops.send(self._scope, ref, dst_rank_in_group=dst_rank_in_group, tag=tag, **options)
        return await self._run(call)

    async def recv(
        self,
        *,
        src_rank_in_group: int | None = None,
        tag: int = 0,
        expected: Expected | None = None,
        **options: Unpack[CallOptions],
    ) -> tuple[Ref, int]:
        """As ``Rank.recv``."""
        call = ops.recv(
            self._scope, src_rank_in_group=src_rank_in_group, tag=tag, expected=expected, **options
        )
        return await self._run(call)

    async def send_object(
        self, value: object, *, dst_rank_in_group: int, tag: int = 0, **options: Unpack[CallOptions]
    ) -> None:
        """As ``Rank.send_object``."""
        call = ops.send_object(self._scope, value, dst_rank_in_group=dst_rank_in_group, tag=tag, **options)
        return await self._run(call)

    async def recv_object(
        self, *, src_rank_in_group: int | None = None, tag: int = 0, **options: Unpack[CallOptions]
    ) -> tuple[Any, int]:
        """As ``Rank.recv_object``."""
        call = ops.recv_object(self._scope, src_rank_in_group=src_rank_in_group, tag=tag, **options)
        return await self._run(call)

    async def send_tensor_dict(
        self,
        tensors: Mapping[Any, Any],
        *,
        dst_rank_in_group: int,
        tag: int = 0,
        **options: Unpack[CallOptions],
    ) -> None:
        """As ``Rank.send_tensor_dict``."""
        call = ops.send_tensor_dict(
            self._scope, tensors, dst_rank_in_group=dst_rank_in_group, tag=tag, **options
        )
        return await self._run(call)

    async def recv_tensor_dict(
        self, *, src_rank_in_group: int | None = None, tag: int = 0, **options: Unpack[CallOptions]
    ) -> tuple[dict[Any, Any], int]:
        """As ``Rank.recv_tensor_dict``."""
        call = ops.recv_tensor_dict(self._scope, src_rank_in_group=src_rank_in_group, tag=tag, **options)
        return await self._run(call)

    async def isend(
        self, ref: Ref, *, dst_rank_in_group: int, tag: int = 0, **options: Unpack[CallOptions]
    ) -> AsyncWork[None]:
        """As ``Rank.isend``."""
        return await self._begin("send", ref, dst_rank_in_group=dst_rank_in_group, tag=tag, **options)

    async def irecv(
        self,
        *,
        src_rank_in_group: int | None = None,
        tag: int = 0,
        expected: Expected | None = None,
        **options: Unpack[CallOptions],
    ) -> AsyncWork[tuple[Ref, int]]:
        """As ``Rank.irecv``."""
        return await self._begin(
            "recv", src_rank_in_group=src_rank_in_group, tag=tag, expected=expected, **options
        )

    async def isend_object(
        self, value: object, *, dst_rank_in_group: int, tag: int = 0, **options: Unpack[CallOptions]
    ) -> AsyncWork[None]:
        """As ``Rank.isend_object``."""
        return await self._begin(
            "send_object", value, dst_rank_in_group=dst_rank_in_group, tag=tag, **options
        )

    async def irecv_object(
        self, *, src_rank_in_group: int | None = None, tag: int = 0, **options: Unpack[CallOptions]
    ) -> AsyncWork[tuple[Any, int]]:
        """As ``Rank.irecv_object``."""
        return await self._begin("recv_object", src_rank_in_group=src_rank_in_group, tag=tag, **options)

    async def isend_tensor_dict(
        self,
        tensors: Mapping[Any, Any],
        *,
        dst_rank_in_group: int,
        tag: int = 0,
        **options: Unpack[CallOptions],
    ) -> AsyncWork[None]:
        """As ``Rank.isend_tensor_dict``."""
        return await self._begin(
            "send_tensor_dict", tensors, dst_rank_in_group=dst_rank_in_group, tag=tag, **options
        )

    async def irecv_tensor_dict(
        self, *, src_rank_in_group: int | None = None, tag: int = 0, **options: Unpack[CallOptions]
    ) -> AsyncWork[tuple[dict[Any, Any], int]]:
        """As ``Rank.irecv_tensor_dict``."""
        return await self._begin("recv_tensor_dict", src_rank_in_group=src_rank_in_group, tag=tag, **options)

    async def _begin(self, operation: str, *args: Any, **options: Any) -> AsyncWork[Any]:
        call = ops.submitting(operation)(self._scope, *args, **with_id(options))
        channels = self._gang._channels
        try:
            await channels.run(call)
        except BaseException as error:
            if not isinstance(error, RankBridgeError) or error.indefinite:
                # The rank may have it, and nobody would ever ask for it.
                await channels.outcomes([ops.cancel(self._scope, call.operation_id)])
            raise
        timeout = options.get("timeout") or self._gang.timeout
        return AsyncWork(channels, call.operation_id, [self.rank], self._gang._scope, timeout)
