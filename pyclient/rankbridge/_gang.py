"""All ranks of a job, blocking."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, Self, TypeVar, Unpack, overload

import grpc

from rankbridge import _operations as ops
from rankbridge._calls import Call
from rankbridge._gang_collectives import GangCollectives
from rankbridge._gang_core import LEASE, merge_groups, new_id, of_gang, refused_submit
from rankbridge._gang_groups import GangGroups
from rankbridge._inits import Init
from rankbridge._operations import CallOptions, Form, MemberOptions
from rankbridge._rank import Rank
from rankbridge._ref import Ref
from rankbridge._renewing import RenewingThread
from rankbridge._status import Formed, Group, RankStatus
from rankbridge._submitted import Submitted
from rankbridge._sync_channels import SyncChannels
from rankbridge._targets import Target, resolve
from rankbridge._tensor import Array, Tensor, TensorLike, as_tensor
from rankbridge.errors import RankBridgeError, UnavailableError

if TYPE_CHECKING:
    import torch

T = TypeVar("T")

__all__ = ["Gang", "connect"]


def connect(
    target: Target,
    *,
    tls: grpc.ChannelCredentials | None = None,
    session: bool = True,
    lease: float | None = LEASE,
    timeout: float = 30.0,
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

    Returns:
        The gang; use it in a ``with`` statement, or close it.

    Raises:
        InvalidArgumentError: The target is malformed.
        OSError: The file cannot be read.
        GangError: A session could not be opened on every rank (``UnavailableError``: a rank is not there).
    """
    targets = resolve(target, secure=tls is not None)
    gang = Gang(
        SyncChannels(targets, tls),
        targets,
        session_id=new_id() if session else "",
        lease=lease,
        timeout=timeout,
    )
    try:
        gang._open_session(gang.session_id)
    except BaseException:
        gang.close()
        raise
    return gang


class Gang(GangCollectives, GangGroups):
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
        channels: SyncChannels,
        targets: Sequence[str],
        *,
        session_id: str,
        lease: float | None,
        timeout: float,
    ) -> None:
        """Made by ``connect``."""
        super().__init__(targets, session_id=session_id, lease=lease, timeout=timeout)
        self._channels = channels
        self._renewing: RenewingThread | None = None
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

    # --- tensors -------------------------------------------------------------------------------------------

    def put(
        self,
        values: Sequence[TensorLike],
        *,
        group: str | Group = "world",
        device: str = "",
        timeout: float | None = None,
    ) -> list[Ref]:
        """Brings one tensor to each rank.

        Args:
            values: One for each member of `group`, in group order: whatever ``Rank.put`` takes.
            group: Whose ranks get them.
            device: "cpu", "cuda:0". Empty: each rank's own.
            timeout: Seconds for the whole transfer. None: the default.
        """
        pairs = self._paired(self._members(group), values, "put")
        return self._channels.run_all(
            [ops.put(scope, value, device=device, timeout=timeout) for scope, value in pairs]
        )

    def put_same(
        self,
        value: TensorLike,
        *,
        group: str | Group = "world",
        device: str = "",
        timeout: float | None = None,
    ) -> list[Ref]:
        """Brings the same tensor to each rank; arguments as of `put`."""
        tensor = as_tensor(value)
        calls = self._on(self._members(group), ops.put, tensor, device=device, timeout=timeout)
        return self._channels.run_all(calls)

    @overload
    def get(self, refs: Ref, *, to: Literal["numpy"] = "numpy", timeout: float | None = None) -> Array: ...
    @overload
    def get(self, refs: Ref, *, to: Literal["torch"], timeout: float | None = None) -> torch.Tensor: ...
    @overload
    def get(self, refs: Ref, *, to: Literal["tensor"], timeout: float | None = None) -> Tensor: ...
    @overload
    def get(
        self, refs: Iterable[Ref], *, to: Literal["numpy"] = "numpy", timeout: float | None = None
    ) -> list[Array]: ...
    @overload
    def get(
        self, refs: Iterable[Ref], *, to: Literal["torch"], timeout: float | None = None
    ) -> list[torch.Tensor]: ...
    @overload
    def get(
        self, refs: Iterable[Ref], *, to: Literal["tensor"], timeout: float | None = None
    ) -> list[Tensor]: ...

    def get(self, refs: Ref | Iterable[Ref], *, to: Form = "numpy", timeout: float | None = None) -> Any:
        """Fetches the tensor of one ref, or of each of several, each from its own rank.

        Args:
            refs: A ref, or several in any order.
            to: "numpy": numpy arrays, or ``Tensor`` where numpy lacks the dtype. "torch": torch tensors on
                the CPU. "tensor": ``Tensor``.
            timeout: Seconds for the whole transfer. None: the default.
        """
        fetched = self._channels.run_all(self._on_owners(refs, ops.get, to=to, timeout=timeout))
        return fetched[0] if isinstance(refs, Ref) else fetched

    def create(
        self,
        dtype: object,
        shape: Iterable[int] | int,
        *,
        init: Init | Sequence[Init] | None = None,
        group: str | Group = "world",
        device: str = "",
    ) -> list[Ref]:
        """Makes a tensor on each rank; nothing but its description travels.

        Args:
            dtype: Name ("bfloat16"), torch dtype or numpy dtype.
            shape: Sizes, outermost first; the same on each rank.
            init: `zeros` (if None), `full`, `arange`, `uniform` or `normal` of this package: one for all, or
                one for each member.
            group: Whose ranks get one.
            device: "cpu", "cuda:0". Empty: each rank's own.
        """
        return self._channels.run_all(self._creates(self._members(group), dtype, shape, init, device))

    @overload
    def describe(self, refs: Ref) -> Ref: ...
    @overload
    def describe(self, refs: Iterable[Ref]) -> list[Ref]: ...

    def describe(self, refs: Ref | Iterable[Ref]) -> Ref | list[Ref]:
        """Asks for dtype, shape and device, as they are now, of one ref or of several in any order."""
        described = self._channels.run_all(self._on_owners(refs, ops.describe))
        return described[0] if isinstance(refs, Ref) else described

    def list_refs(self) -> list[list[Ref]]:
        """Lists, by rank, the refs of the current session, in the order in which they were made."""
        pages = self._channels.run_all(self._on(self._all(), ops.list_refs))
        return [
            [*page.refs, *(rank._more_refs(page.next_page_token) if page.next_page_token else ())]
            for rank, page in zip(self, pages, strict=True)
        ]

    def release(self, refs: Ref | Iterable[Ref]) -> int:
        """Frees refs of any ranks and sessions, and gives their number.

        Those of one rank and session are freed all or none; if one rank refuses, others may have freed
        theirs.
        """
        return sum(self._channels.run_all(self._releases(refs)))

    # --- collectives ---------------------------------------------------------------------------------------

    def barrier(self, **options: Unpack[CallOptions]) -> None:
        """Returns when every member has been reached."""
        members = self._members(options.get("group", "world"))
        self._channels.run_all(self._on_members(members, ops.barrier, **options))

    # --- operations that go on by themselves ---------------------------------------------------------------

    def submit(self, operation: str, refs: Sequence[Ref] | None = None, **options: Any) -> Submitted:
        """Begins a collective on every member, and returns as soon as they all have it.

        If a rank refuses it, it is withdrawn on the others.

        Args:
            operation: Name of the collective, as of this class's method: "all_reduce".
            refs: What the method takes; None for one that takes none.
            **options: What the method takes.

        Returns:
            The operation, to `poll`, to `cancel`, and to wait for its `result`.

        Raises:
            InvalidArgumentError: There is no such collective.
            GangError: A rank refused it.
        """
        members = self._members(options.get("group", "world")) if refs is None else ()
        calls = self._submits(operation, refs, members, options)
        operation_id = calls[0].operation_id
        outcomes = self._channels.outcomes(calls)
        if any(outcome.error is not None for outcome in outcomes):
            withdrawn = self._channels.outcomes(self._withdraws(operation_id, outcomes))
            raise refused_submit(outcomes, withdrawn)
        return self._submitted(operation_id, [call.rank for call in calls], options.get("timeout"))

    def find(self, operation_id: str, *, group: str | Group = "world") -> Submitted:
        """Gives any operation by its id: also one whose call was lost, or that another process began.

        Args:
            operation_id: Its id.
            group: Its group.

        Returns:
            The operation. Whether the ranks know it shows when they are asked.
        """
        return self._submitted(operation_id, self._members(group), None)

    # --- groups and the gang -------------------------------------------------------------------------------

    def new_group(self, name: str, ranks: Iterable[int], **options: Unpack[CallOptions]) -> Group:
        """Makes a group.

        Args:
            name: Its name, 1 to 128 bytes, not yet used.
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
        """Describes every group that any rank has, by name."""
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

    def _members(self, group: str | Group) -> tuple[int, ...]:
        known = self._known_members(group)
        return self._channels.run(self._describe(group)).ranks if known is None else known

    def _submitted(self, operation_id: str, members: Sequence[int], timeout: float | None) -> Submitted:
        return Submitted(self._channels, operation_id, members, self._scope, timeout or self.timeout)

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
                self._renewing = RenewingThread(self._period, self._renew)
            self._channels.run_all(opens)

    def _close_session(self, session_id: str) -> None:
        if session_id and not self._channels.closed:
            # Errors change nothing: a rank that cannot be reached frees its refs by its own end.
            self._channels.outcomes(self._closes(session_id))

    def _renew(self) -> None:
        # Errors change nothing: calls in a session that was lost fail by themselves.
        with contextlib.suppress(RankBridgeError):
            self._channels.outcomes(self._renewals())
