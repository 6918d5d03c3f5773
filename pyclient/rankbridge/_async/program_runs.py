"""Running programs, for asyncio."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Unpack

from rankbridge._async.front import AsyncGangFront, AsyncRankFront
from rankbridge._plan import operations as ops
from rankbridge._plan import procedures as procedures
from rankbridge._plan.operations import CallOptions
from rankbridge._plan.program import Program
from rankbridge._plan.program_steps import Named

__all__ = ["AsyncGangRuns", "AsyncRankRuns"]


class AsyncGangRuns(AsyncGangFront):
    """As ``GangRuns``: what an ``AsyncGang`` does, to be awaited."""

    async def run(
        self, program: Program, *, keep: Sequence[Named] = (), **options: Unpack[CallOptions]
    ) -> list[Any]:
        """As ``Gang.run``."""
        return await self._carried_out(procedures.running(self, program, {**options, "keep": keep}))


class AsyncRankRuns(AsyncRankFront):
    """As ``RankRuns``: what an ``AsyncRank`` does, to be awaited."""

    async def run(
        self, program: Program, *, keep: Sequence[Named] = (), **options: Unpack[CallOptions]
    ) -> list[Any]:
        """As ``Rank.run``."""
        return await self._run(ops.run_program(self._scope, program, keep=keep, **options))
