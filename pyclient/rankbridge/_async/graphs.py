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
    """How a ``AsyncGang`` records collectives, and runs them again in one call: vLLM's ``graph_capture``.

    What is recorded are the collectives on tensors that the current session does in one group. The calls inside run
    as ever; those that fail are not recorded, and what is called on refs of other sessions belongs to these. A replay
    reads the refs that they read, as they are then, and puts the results into the refs that they gave.
    """

    @contextlib.asynccontextmanager
    async def graph_capture(
        self, name: str | None = None, *, group: str | Group = "world"
    ) -> AsyncIterator[Graph]:
        """Records what is done in a group inside a ``with`` statement.

        For example::

            with gang.graph_capture() as graph:
                sums = gang.all_reduce(gradients)
            gang.replay(graph)

        Args:
            name: Name of the graph, 1 to 128 bytes, unique in the session. None: one that nothing else has.
            group: The group.

        Gives:
            The graph; its `operations` are known at the end. An exception inside ends the recording, and nothing is
            kept.

        Raises:
            GangError: ``InvalidArgumentError``: the session records in the group already; ``NameExistsError``;
                ``ResourceExhaustedError``: more was done than a graph can have. Nothing is kept.
        """
        graph = await self.begin_capture(name, group=group)
        try:
            yield graph
        except BaseException:
            await self._carried_out(procedures.dropping(self, graph))
            raise
        await self._carried_out(procedures.ending(self, graph))

    async def begin_capture(self, name: str | None = None, *, group: str | Group = "world") -> Graph:
        """Begins to record on every member of a group, or on none: see `graph_capture`."""
        return await self._carried_out(procedures.beginning(self, name, group))

    async def end_capture(self, *, group: str | Group = "world") -> Graph:
        """Ends what the session records in a group, and keeps it as a graph, on every member or on none.

        Raises:
            GangError: ``UnknownGraphError``: it records nothing there; ``ResourceExhaustedError``: it was too much.
        """
        return await self._carried_out(procedures.recorded_in(self, group))

    async def replay(self, graph: str | Graph, **options: Unpack[CallOptions]) -> list[Any]:
        """Runs a graph again, on all members, as one operation: one call and one admission. Nothing is allocated.

        Args:
            graph: The graph, or its name in the current session.
            **options: ``CallOptions``. The group is the graph's own, unless it is named and another than "world".

        Returns:
            For each collective, in order, what its method gives, in the refs that it gave when it was recorded; None
            for a barrier.

        Raises:
            GangError: ``UnknownGraphError``; ``ReleasedRefError``: one of its refs is gone; ``MismatchError``: the
                members have recorded different collectives; or what a collective can fail with. If one cannot be
                done, none is.
        """
        return await self._carried_out(replaying(self, graph, dict(options)))

    async def release_graph(self, graph: str | Graph) -> Graph:
        """Forgets a graph, on every rank that has it, and gives it as it was. Its refs stay.

        Args:
            graph: The graph, or its name in the current session.

        Raises:
            GangError: ``UnknownGraphError``: no rank has it.
        """
        return await self._carried_out(procedures.releasing(self, graph))


class AsyncRankGraphs(AsyncRankFront):
    """How a ``AsyncRank`` records its part of collectives, and runs it again; what it means, ``AsyncGang`` tells of each."""

    @contextlib.asynccontextmanager
    async def graph_capture(
        self, name: str | None = None, *, group: str | Group = "world"
    ) -> AsyncIterator[Graph]:
        """Records what this rank does in a group inside a ``with`` statement. See ``AsyncGang.graph_capture``."""
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
        """Begins to record on this rank. See ``AsyncGang.begin_capture``."""
        return await self._run(ops.begin_capture(self._scope, name, group=group))

    async def end_capture(self, *, group: str | Group = "world") -> Graph:
        """Ends what the session records in a group on this rank, and keeps it. See ``AsyncGang.end_capture``."""
        return await self._run(ops.end_capture(self._scope, group=group))

    async def replay(self, graph: str | Graph, **options: Unpack[CallOptions]) -> list[Any]:
        """Runs this rank's part of a graph again; the other members run theirs. See ``AsyncGang.replay``.

        Args:
            graph: The graph, or its name in the current session.
            **options: ``CallOptions``. The group is the graph's own, unless it is named.

        Returns:
            What each collective gives here, in order.
        """
        return await self._run(ops.replay(self._scope, graph, **options))

    async def release_graph(self, graph: str | Graph) -> Graph:
        """Forgets this rank's part of a graph, and gives it as it was. See ``AsyncGang.release_graph``."""
        return await self._run(ops.release_graph(self._scope, graph))
