"""Several collectives of one group as one operation, for asyncio."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Unpack

from rankbridge._async.front import AsyncGangFront, AsyncRankFront
from rankbridge._plan import operations as ops
from rankbridge._plan import procedures as procedures
from rankbridge._plan.operations import CallOptions, Collective

__all__ = ["AsyncGangCoalesced", "AsyncRankCoalesced"]


class AsyncGangCoalesced(AsyncGangFront):
    """As ``GangCoalesced``: what an ``AsyncGang`` does, to be awaited."""

    async def coalesce(self, collectives: Sequence[Collective], **options: Unpack[CallOptions]) -> list[Any]:
        """As ``Gang.coalesce``."""
        return await self._carried_out(procedures.coalescing(self, collectives, dict(options)))


class AsyncRankCoalesced(AsyncRankFront):
    """As ``RankCoalesced``: what an ``AsyncRank`` does, to be awaited."""

    async def coalesce(self, collectives: Sequence[Collective], **options: Unpack[CallOptions]) -> list[Any]:
        """As ``Rank.coalesce``."""
        return await self._run(ops.coalesce(self._scope, collectives, **options))
