# Written by scripts/unasync.py from _async/gang.py: change that file, not this one.
"""All ranks of a job, blocking."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from types import TracebackType
from typing import Any, Self, TypeVar, Unpack

import grpc

from rankbridge._plan import operations as ops
from rankbridge._plan.calls import Call
from rankbridge._plan.gang_core import LEASE, merge_groups, new_id, of_gang, refused_submit
from rankbridge._plan.operations import CallOptions, Calls, MemberOptions
from rankbridge._plan.procedures import anything, finishing, member_calls, members_for
from rankbridge._plan.status import Formed, Group, RankStatus
from rankbridge._sync.averaging import GangAveraging
from rankbridge._sync.coalesced import GangCoalesced
from rankbridge._sync.coordinator import GangCoordinator
from rankbridge._sync.events import GangEvents
from rankbridge._sync.gang_collectives import GangCollectives
from rankbridge._sync.gang_groups import GangGroups
from rankbridge._sync.gang_refs import GangRefs
from rankbridge._sync.gathers import GangGathers
from rankbridge._sync.graphs import GangGraphs
from rankbridge._sync.objects import GangObjects
from rankbridge._sync.program_runs import GangRuns
from rankbridge._sync.queue import GangQueues
from rankbridge._sync.rank import Rank
from rankbridge._sync.stream import GangStreams
from rankbridge._sync.submitted import Submitted
from rankbridge._sync.synchronizing import GangSynchronizing
from rankbridge._transport.shared_memory import SharedMemory
from rankbridge._transport.targets import Target, resolve
from rankbridge._transport.threads.channels import Channels
from rankbridge._transport.threads.renewing import Renewing
from rankbridge.errors import RankBridgeError, UnavailableError

T = TypeVar("T")

__all__ = ["Gang", "connect"]


def connect(
    target: Target,
    *,
    tls: grpc.ChannelCredentials | None = None,
    session: bool = True,
    lease: float | None = LEASE,
    timeout: float = 30.0,
    calls: Calls = "ranks",
    shared_memory: bool = True,
) -> Gang:
    """Connects to every rank of a gang.

    Args:
        target: Path of an endpoints file, its dict, or each rank's gRPC target (or targets) by rank. Of a
            rank's several endpoints, a unix socket that exists on this machine is preferred.
        tls: Credentials for TLS, from ``grpc.ssl_channel_credentials``. None: no TLS.
        session: True: opens a session on every rank, which owns the refs made through this gang and is closed
            with it. False: refs belong to the ranks' shared sessions and live until they are released.
        lease: How long the ranks keep the gang's sessions when nothing is heard of this process, in seconds. They
            are renewed in the background, three times in that time, as long as the gang is open. None or 0: until
            they are closed, however long that takes.
        timeout: Default longest time of a call, in seconds.
        calls: How collectives are called: "ranks", each rank at once; or "gang", as one call to one rank, which passes
            it on. `calls` of a single call tells otherwise.
        shared_memory: True: large tensors come from ranks at unix sockets, and go to them, by memory that both share,
            where that can be had; ``Rank.transfers`` tells. An array that was fetched so is of that memory, and as much
            the caller's own as any other. False: always over gRPC. Without a session too.

    Returns:
        The gang; use it in a ``with`` statement, or close it.

    Raises:
        InvalidArgumentError: The target is malformed.
        OSError: The file cannot be read.
        GangError: A session could not be opened on every rank (``UnavailableError``: a rank is not there).
    """
    targets = resolve(target, secure=tls is not None)
    session_id = new_id() if session else ""
    shared = SharedMemory(targets, session_id, ops.SHARED_CALLS) if session and shared_memory else None
    gang = Gang(
        Channels(targets, tls, shared),
        targets,
        session_id=session_id,
        lease=lease,
        timeout=timeout,
        calls=calls,
    )
    try:
        gang._open_session(gang.session_id)
    except BaseException:
        gang.close()
        raise
    return gang


class Gang(
    GangRefs,
    GangCollectives,
    GangGathers,
    GangObjects,
    GangCoalesced,
    GangRuns,
    GangStreams,
    GangGraphs,
    GangQueues,
    GangCoordinator,
    GangAveraging,
    GangSynchronizing,
    GangGroups,
    GangEvents,
):
    """All ranks of a job: ``gang.all_reduce(refs)``, ``gang[2]``, ``len(gang)``.

    Lists of refs and values are in group order, one for each member; for "world" that is by rank. A call goes
    to all ranks at once, and returns or raises when every rank's outcome is known. What fails raises one
    ``GangError`` that is also of the cause's class and has every rank's outcome. ``**options`` are
    ``CallOptions``: `group` (a ``Group`` or its name), `timeout` in seconds, `operation_id`, `generation`.

    Attributes:
        targets: gRPC target of each rank, by rank.
        timeout: Default timeout of calls, in seconds.
    """

    def __init__(
        self,
        channels: Channels,
        targets: Sequence[str],
        *,
        session_id: str,
        lease: float | None,
        timeout: float,
        calls: Calls = "ranks",
    ) -> None:
        """Made by ``connect``."""
        super().__init__(targets, session_id=session_id, lease=lease, timeout=timeout, calls=calls)
        self._channels = channels
        self._renewing: Renewing | None = None
        self._ranks = tuple(Rank(self, rank) for rank in self._all())

    def __enter__(self) -> Self:
        """Gives the gang itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Closes the gang."""
        self.close()

    def close(self) -> None:
        """Closes the session, which frees its refs on every rank that can be reached, and the connections."""
        if self._renewing is not None:
            self._renewing.end()
        self._close_session(self._session_id)
        self._channels.close()
        if self._renewing is not None:
            self._renewing.join()

    @contextlib.contextmanager
    def session(self) -> Iterator[str]:
        """Opens a session on every rank for the length of a ``with`` statement, and gives its id.

        What is made inside, in the same thread or task, belongs to it and is freed at the end. Refs of other
        sessions can be used inside; what comes of them belongs to their session. Sessions nest.

        Raises:
            GangError: It could not be opened on every rank.
        """
        session_id = new_id()
        try:
            self._open_session(session_id)
            with self._entered(session_id):
                yield session_id
        finally:
            self._close_session(session_id)

    # --- collectives ---------------------------------------------------------------------------------------

    def barrier(self, **options: Unpack[CallOptions]) -> None:
        """Returns when every member has been reached."""
        members = self._members(options.get("group", "world"))
        self._channels.run_all(self._on_members(members, ops.barrier, **options))

    def ping(self, **options: Unpack[CallOptions]) -> None:
        """Returns when every member has said that it is there, in the order of the group's other operations.

        It is a gang call always, and enters no backend.
        """
        members = self._members(options.get("group", "world"))
        calls = self._on_members(members, ops.ping, **{**options, "calls": "gang"})
        self._channels.run_all(calls)

    # --- operations that go on by themselves ---------------------------------------------------------------

    def submit(self, operation: str, given: Any = None, **options: Any) -> Submitted:
        """Begins a collective on every member, and returns as soon as they all have it.

        If a rank refuses it, it is withdrawn on the others.

        Args:
            operation: Name of the collective, as of this class's method: "all_reduce", "broadcast_object".
            given: What the method takes first: refs, a value, values; None for one that takes nothing.
            **options: What else the method takes.

        Returns:
            The operation, to `poll`, to `cancel`, and to wait for its `result`.

        Raises:
            InvalidArgumentError: There is no such collective.
            GangError: A rank refused it.
        """
        build, finish = ops.submitting(operation), finishing(operation, given)
        members = self._carried_out(members_for(self, operation, given, options))
        calls = member_calls(self, operation, build, given, members, options)
        operation_id = calls[0].operation_id
        outcomes = self._channels.outcomes(calls)
        if any(outcome.error is not None for outcome in outcomes):
            withdrawn = self._channels.outcomes(self._withdraws(operation_id, outcomes))
            raise refused_submit(outcomes, withdrawn)
        timeout = options.get("timeout") or self.timeout
        ranks = [call.rank for call in calls]
        return Submitted(self._channels, finish, operation_id, ranks, self._scope, timeout)

    def find(self, operation_id: str, *, group: str | Group = "world") -> Submitted:
        """Gives any operation by its id: also one whose call was lost, or that another process began.

        Args:
            operation_id: Its id.
            group: Its group.

        Returns:
            The operation. Whether the ranks know it shows when they are asked.
        """
        members = self._members(group)
        return Submitted(self._channels, anything, operation_id, members, self._scope, self.timeout)

    # --- groups and the gang -------------------------------------------------------------------------------

    def new_group(self, name: str, ranks: Iterable[int], **options: Unpack[CallOptions]) -> Group:
        """Makes a group.

        Args:
            name: Its name, 1 to 128 bytes, which no other group has.
            ranks: Ranks of the gang, in group order.
            **options: See the class; `group` is the group whose members make the new one.
        """
        members = self._members(options.get("group", "world"))
        made = self._channels.run_all(self._on_members(members, ops.new_group, name, tuple(ranks), **options))
        return of_gang(made[0])

    def destroy_group(self, group: str | Group, **options: Unpack[MemberOptions]) -> Group:
        """Ends a group, after the calls queued on it, and gives it as it was."""
        ended = self._channels.run_all(
            self._on_members(self._members(group), ops.destroy_group, group, **options)
        )
        return of_gang(ended[0])

    def groups(self) -> list[Group]:
        """Describes every group that any rank is a member of, by name."""
        return merge_groups(self._channels.run_all(self._on(self._all(), ops.groups)))

    def status(self) -> list[RankStatus]:
        """Describes every rank.

        Raises:
            GangError: Some ranks could not be reached; its `outcomes` have the others.
        """
        return self._channels.run_all(self._on(self._all(), ops.status))

    def form(
        self,
        *,
        groups: Iterable[Group | tuple[str, Iterable[int]]] = (),
        endpoints: Sequence[str] | None = None,
        via_rank: int = 0,
        timeout: float = 10.0,
    ) -> Formed:
        """Forms the next generation, of every rank or of none, and opens the gang's sessions in it.

        After a rank was lost this makes the gang whole: it waits for a new one at the same endpoints, and opens the
        sessions on it. Refs of the others stay; those of the lost rank are gone.

        Args:
            groups: Groups to form beside "world": ``Group``, or pairs of a name and its ranks in group order.
            endpoints: Every rank's gRPC target by rank, as that rank can reach it. None: the gang's own
                targets.
            via_rank: Which rank's sidecar does it.
            timeout: Seconds for all of it.
        """
        scope = self._scope(via_rank)
        call = ops.form(scope, endpoints or self.targets, groups=groups, timeout=timeout)
        # The rank that is asked may be one that was just replaced.
        (formed,) = self._run_again([replace(call, wait_for_ready=True)])
        self._run_again(self._opens_again())
        return formed

    # --- inside --------------------------------------------------------------------------------------------

    def _run_again(self, calls: Sequence[Call[T]]) -> list[T]:
        # A connection to a rank that died may not be known to be lost yet; the next one leads to the new rank.
        try:
            return self._channels.run_all(calls)
        except UnavailableError:
            return self._channels.run_all(calls)

    def _open_session(self, session_id: str) -> None:
        if session_id:
            opens = self._opens(session_id)
            if self._period is not None and self._renewing is None:
                self._renewing = Renewing(self._period, self._renew)
            self._channels.run_all(opens)

    def _close_session(self, session_id: str) -> None:
        if session_id and not self._channels.closed:
            # Errors change nothing: a rank that cannot be reached frees its refs by its own end.
            self._channels.outcomes(self._closes(session_id))

    def _renew(self) -> None:
        # Errors change nothing: calls in a session that was lost fail by themselves.
        with contextlib.suppress(RankBridgeError):
            self._channels.outcomes(self._renewals())
