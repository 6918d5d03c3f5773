"""All ranks of a job, for asyncio."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Iterable, Sequence
from dataclasses import replace
from types import TracebackType
from typing import Any, Self, TypeVar, Unpack

import grpc

from rankbridge._async.averaging import AsyncGangAveraging
from rankbridge._async.coalesced import AsyncGangCoalesced
from rankbridge._async.coordinator import AsyncGangCoordinator
from rankbridge._async.events import AsyncGangEvents
from rankbridge._async.gang_collectives import AsyncGangCollectives
from rankbridge._async.gang_groups import AsyncGangGroups
from rankbridge._async.gang_refs import AsyncGangRefs
from rankbridge._async.gathers import AsyncGangGathers
from rankbridge._async.graphs import AsyncGangGraphs
from rankbridge._async.objects import AsyncGangObjects
from rankbridge._async.program_runs import AsyncGangRuns
from rankbridge._async.queue import AsyncGangQueues
from rankbridge._async.rank import AsyncRank
from rankbridge._async.stream import AsyncGangStreams
from rankbridge._async.synchronizing import AsyncGangSynchronizing
from rankbridge._plan import operations as ops
from rankbridge._plan.calls import Call
from rankbridge._plan.gang_core import LEASE, merge_groups, new_id, of_gang, refused_submit
from rankbridge._plan.operations import CallOptions, Calls, MemberOptions
from rankbridge._plan.procedures import anything, finishing, member_calls, members_for
from rankbridge._plan.status import Formed, Group, RankStatus
from rankbridge._submitted import AsyncSubmitted
from rankbridge._transport.aio.channels import AsyncChannels
from rankbridge._transport.renewing import RenewingTask
from rankbridge._transport.shared_memory import SharedMemory
from rankbridge._transport.targets import Target, resolve
from rankbridge.errors import RankBridgeError, UnavailableError

T = TypeVar("T")

__all__ = ["AsyncGang", "aconnect"]


async def aconnect(
    target: Target,
    *,
    tls: grpc.ChannelCredentials | None = None,
    session: bool = True,
    lease: float | None = LEASE,
    timeout: float = 30.0,
    calls: Calls = "ranks",
    shared_memory: bool = True,
) -> AsyncGang:
    """Connects to every rank of a gang, as ``connect``, in the running event loop.

    Use it as ``async with await aconnect(...) as gang``, or close it.
    """
    targets = resolve(target, secure=tls is not None)
    session_id = new_id() if session else ""
    shared = SharedMemory(targets, session_id, ops.SHARED_CALLS) if session and shared_memory else None
    gang = AsyncGang(
        AsyncChannels(targets, tls, shared),
        targets,
        session_id=session_id,
        lease=lease,
        timeout=timeout,
        calls=calls,
    )
    try:
        await gang._open_session(gang.session_id)
    except BaseException:
        await gang.close()
        raise
    return gang


class AsyncGang(
    AsyncGangRefs,
    AsyncGangCollectives,
    AsyncGangGathers,
    AsyncGangObjects,
    AsyncGangCoalesced,
    AsyncGangRuns,
    AsyncGangStreams,
    AsyncGangGraphs,
    AsyncGangQueues,
    AsyncGangCoordinator,
    AsyncGangAveraging,
    AsyncGangSynchronizing,
    AsyncGangGroups,
    AsyncGangEvents,
):
    """All ranks of a job, as ``Gang``: the same methods and arguments, to be awaited, in one event loop.

    Attributes:
        targets: gRPC target of each rank, by rank.
        timeout: Default timeout of calls, in seconds.
    """

    def __init__(
        self,
        channels: AsyncChannels,
        targets: Sequence[str],
        *,
        session_id: str,
        lease: float | None,
        timeout: float,
        calls: Calls = "ranks",
    ) -> None:
        """Made by ``aconnect``."""
        super().__init__(targets, session_id=session_id, lease=lease, timeout=timeout, calls=calls)
        self._channels = channels
        self._renewing: RenewingTask | None = None
        self._ranks = tuple(AsyncRank(self, rank) for rank in self._all())

    async def __aenter__(self) -> Self:
        """Gives the gang itself."""
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Closes the gang."""
        await self.close()

    async def close(self) -> None:
        """As ``Gang.close``."""
        if self._renewing is not None:
            await self._renewing.end()
        await self._close_session(self._session_id)
        await self._channels.close()

    @contextlib.asynccontextmanager
    async def session(self) -> AsyncIterator[str]:
        """As ``Gang.session``."""
        session_id = new_id()
        try:
            await self._open_session(session_id)
            with self._entered(session_id):
                yield session_id
        finally:
            await self._close_session(session_id)

    # --- collectives ---------------------------------------------------------------------------------------

    async def barrier(self, **options: Unpack[CallOptions]) -> None:
        """As ``Gang.barrier``."""
        members = await self._members(options.get("group", "world"))
        await self._channels.run_all(self._on_members(members, ops.barrier, **options))

    async def ping(self, **options: Unpack[CallOptions]) -> None:
        """As ``Gang.ping``."""
        members = await self._members(options.get("group", "world"))
        calls = self._on_members(members, ops.ping, **{**options, "calls": "gang"})
        await self._channels.run_all(calls)

    # --- operations that go on by themselves ---------------------------------------------------------------

    async def submit(self, operation: str, given: Any = None, **options: Any) -> AsyncSubmitted:
        """As ``Gang.submit``."""
        build, finish = ops.submitting(operation), finishing(operation, given)
        members = await self._carried_out(members_for(self, operation, given, options))
        calls = member_calls(self, operation, build, given, members, options)
        operation_id = calls[0].operation_id
        outcomes = await self._channels.outcomes(calls)
        if any(outcome.error is not None for outcome in outcomes):
            withdrawn = await self._channels.outcomes(self._withdraws(operation_id, outcomes))
            raise refused_submit(outcomes, withdrawn)
        timeout = options.get("timeout") or self.timeout
        ranks = [call.rank for call in calls]
        return AsyncSubmitted(self._channels, finish, operation_id, ranks, self._scope, timeout)

    async def find(self, operation_id: str, *, group: str | Group = "world") -> AsyncSubmitted:
        """As ``Gang.find``."""
        members = await self._members(group)
        return AsyncSubmitted(self._channels, anything, operation_id, members, self._scope, self.timeout)

    # --- groups and the gang -------------------------------------------------------------------------------

    async def new_group(self, name: str, ranks: Iterable[int], **options: Unpack[CallOptions]) -> Group:
        """As ``Gang.new_group``."""
        members = await self._members(options.get("group", "world"))
        made = await self._channels.run_all(
            self._on_members(members, ops.new_group, name, tuple(ranks), **options)
        )
        return of_gang(made[0])

    async def destroy_group(self, group: str | Group, **options: Unpack[MemberOptions]) -> Group:
        """As ``Gang.destroy_group``."""
        ended = await self._channels.run_all(
            self._on_members(await self._members(group), ops.destroy_group, group, **options)
        )
        return of_gang(ended[0])

    async def groups(self) -> list[Group]:
        """As ``Gang.groups``."""
        return merge_groups(await self._channels.run_all(self._on(self._all(), ops.groups)))

    async def status(self) -> list[RankStatus]:
        """As ``Gang.status``."""
        return await self._channels.run_all(self._on(self._all(), ops.status))

    async def form(
        self,
        *,
        groups: Iterable[Group | tuple[str, Iterable[int]]] = (),
        endpoints: Sequence[str] | None = None,
        via_rank: int = 0,
        timeout: float = 10.0,
    ) -> Formed:
        """As ``Gang.form``."""
        scope = self._scope(via_rank)
        call = ops.form(scope, endpoints or self.targets, groups=groups, timeout=timeout)
        # The rank that is asked may be one that was just replaced.
        (formed,) = await self._run_again([replace(call, wait_for_ready=True)])
        await self._run_again(self._opens_again())
        return formed

    # --- inside --------------------------------------------------------------------------------------------

    async def _run_again(self, calls: Sequence[Call[T]]) -> list[T]:
        # A connection to a rank that died may not be known to be lost yet; the next one leads to the new rank.
        try:
            return await self._channels.run_all(calls)
        except UnavailableError:
            return await self._channels.run_all(calls)

    async def _open_session(self, session_id: str) -> None:
        if session_id:
            opens = self._opens(session_id)
            if self._period is not None and self._renewing is None:
                self._renewing = RenewingTask(self._period, self._renew)
            await self._channels.run_all(opens)

    async def _close_session(self, session_id: str) -> None:
        if session_id and not self._channels.closed:
            # Errors change nothing: a rank that cannot be reached frees its refs by its own end.
            await self._channels.outcomes(self._closes(session_id))

    async def _renew(self) -> None:
        # Errors change nothing: calls in a session that was lost fail by themselves.
        with contextlib.suppress(RankBridgeError):
            await self._channels.outcomes(self._renewals())
