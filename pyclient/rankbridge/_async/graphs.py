"""Recording collectives, and running them again, for asyncio."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator
from typing import Any, Unpack

from rankbridge._async.front import AsyncGangFront, AsyncRankFront
from rankbridge._plan import graph_procedures as procedures
from rankbridge._plan import operations as ops
from rankbridge._plan.graph import Graph
from rankbridge._plan.groups import Group
from rankbridge._plan.operations import CallOptions
from rankbridge._plan.procedures import replaying

__all__ = ["AsyncGangGraphs", "AsyncRankGraphs"]


class AsyncGangGraphs(AsyncGangFront):
    """As ``GangGraphs``: what an ``AsyncGang`` does, to be awaited."""

    @contextlib.asynccontextmanager
    async def graph_capture(
        self, name: str | None = None, *, group: str | Group = "world"
    ) -> AsyncIterator[Graph]:
        """As ``Gang.graph_capture``."""
        graph = await self.begin_capture(name, group=group)
        try:
            yield graph
        except BaseException:
            await self._carried_out(procedures.dropping(self, graph))
            raise
        await self._carried_out(procedures.ending(self, graph))

    async def begin_capture(self, name: str | None = None, *, group: str | Group = "world") -> Graph:
        """As ``Gang.begin_capture``."""
        return await self._carried_out(procedures.beginning(self, name, group))

    async def end_capture(self, *, group: str | Group = "world") -> Graph:
        """As ``Gang.end_capture``."""
        return await self._carried_out(procedures.recorded_in(self, group))

    async def replay(self, graph: str | Graph, **options: Unpack[CallOptions]) -> list[Any]:
        """As ``Gang.replay``."""
        return await self._carried_out(replaying(self, graph, dict(options)))

    async def release_graph(self, graph: str | Graph) -> Graph:
        """As ``Gang.release_graph``."""
        return await self._carried_out(procedures.releasing(self, graph))


class AsyncRankGraphs(AsyncRankFront):
    """As ``RankGraphs``: what an ``AsyncRank`` does, to be awaited."""

    @contextlib.asynccontextmanager
    async def graph_capture(
        self, name: str | None = None, *, group: str | Group = "world"
    ) -> AsyncIterator[Graph]:
        """As ``Rank.graph_capture``."""
        scope = self._scope
        graph = await self._run(ops.begin_capture(scope, name, group=group))
        try:
            yield graph
        except BaseException:
            for ended in await self._gang._channels.outcomes([ops.end_capture(scope, group=group)]):
                if ended.value is not None:
                    await self._gang._channels.outcomes([ops.release_graph(scope, ended.value)])
            raise
        graph.operations = (await self._run(ops.end_capture(scope, group=group))).operations

    async def begin_capture(self, name: str | None = None, *, group: str | Group = "world") -> Graph:
        """As ``Rank.begin_capture``."""
        return await self._run(ops.begin_capture(self._scope, name, group=group))

    async def end_capture(self, *, group: str | Group = "world") -> Graph:
        """As ``Rank.end_capture``."""
        return await self._run(ops.end_capture(self._scope, group=group))

    async def replay(self, graph: str | Graph, **options: Unpack[CallOptions]) -> list[Any]:
        """As ``Rank.replay``."""
        return await self._run(ops.replay(self._scope, graph, **options))

    async def release_graph(self, graph: str | Graph) -> Graph:
        """As ``Rank.release_graph``."""
        return await self._run(ops.release_graph(self._scope, graph))
