"""What OLMo-core's distributed utilities have names for, for asyncio."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any, Unpack

from rankbridge._async.front import AsyncGangFront
from rankbridge._async.rank import AsyncRank
from rankbridge._plan import group_procedures as procedures
from rankbridge._plan import rounds as rounds
from rankbridge._plan.groups import Group
from rankbridge._plan.operations import CallOptions
from rankbridge._plan.rounds import Round
from rankbridge._sync.synchronizing import checked_flag
from rankbridge.errors import GangError

__all__ = ["AsyncGangSynchronizing"]


class AsyncGangSynchronizing(AsyncGangFront):
    """As ``GangSynchronizing``: what an ``AsyncGang`` does, to be awaited; rounds are iterated with ``async for``."""

    async def is_distributed(self) -> bool:
        """As ``Gang.is_distributed``."""
        return await self._carried_out(procedures.being_formed(self))

    async def synchronize_value(
        self, value: object, *, src_rank_in_group: int = 0, **options: Unpack[CallOptions]
    ) -> list[Any]:
        """As ``Gang.synchronize_value``."""
        return await self._called("broadcast_object", value, src_rank_in_group=src_rank_in_group, **options)

    async def synchronize_flag(
        self, flag: bool, *, src_rank_in_group: int = 0, **options: Unpack[CallOptions]
    ) -> list[bool]:
        """As ``Gang.synchronize_flag``."""
        given = checked_flag(flag)
        return await self._called("broadcast_object", given, src_rank_in_group=src_rank_in_group, **options)

    def do_n_at_a_time(
        self, n: int | None = None, *, group: str | Group = "world", timeout: float | None = None
    ) -> AsyncIterator[Round[AsyncRank]]:
        """As ``Gang.do_n_at_a_time``."""
        return self._rounds(rounds.checked_number(n), group, timeout)

    async def _rounds(
        self, n: int | None, group: str | Group, timeout: float | None
    ) -> AsyncIterator[Round[AsyncRank]]:
        planned = await self._carried_out(rounds.taking_turns(self, n, group, self.__getitem__))
        for each in planned:
            yield each
            try:
                await self._called("barrier", group=group, timeout=timeout)
            except GangError as error:
                rounds.note(error, planned)
                raise
        if (failure := rounds.told(planned)) is not None:
            raise failure
