# Written by scripts/unasync.py from _async/gang.py: change that file, not this one.
"""All ranks of a job, blocking."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, Self, TypeVar, Unpack, overload

import grpc

from rankbridge._plan import (
    compositions,
    graph_procedures,
    group_procedures,
    operations as ops,
    queue_procedures,
)
from rankbridge._plan.breakpoints import parse_breakpoint
from rankbridge._plan.calls import Call
from rankbridge._plan.events import EventKind, starts_at, watch
from rankbridge._plan.functions import Arguments, FunctionDescription
from rankbridge._plan.gang_core import CLOSE_TIMEOUT, GangCore, groups_known, new_id, of_gang
from rankbridge._plan.graph import Graph
from rankbridge._plan.group_procedures import GroupLike
from rankbridge._plan.groups import Group, listed
from rankbridge._plan.inits import Init
from rankbridge._plan.layout import Layout
from rankbridge._plan.mesh import Mesh
from rankbridge._plan.metrics import MetricFamily
from rankbridge._plan.named import Comparison, NamedTensor, asking, comparing
from rankbridge._plan.operations import (
    CallOptions,
    Calls,
    Collective,
    Form,
    GatherLayout,
    MemberOptions,
    ReduceOp,
)
from rankbridge._plan.pending import RankPending
from rankbridge._plan.positions import Position
from rankbridge._plan.procedures import (
    Procedure,
    anything,
    calling,
    doing_several,
    finishing,
    member_calls,
    members_for,
    members_of,
)
from rankbridge._plan.program import Program
from rankbridge._plan.program_steps import Named
from rankbridge._plan.record import RecordedOperation, ThreadStack
from rankbridge._plan.ref import Ref
from rankbridge._plan.status import Formed, RankStatus
from rankbridge._plan.summary import Summary
from rankbridge._plan.tensor import Array, Tensor, TensorLike, as_tensor
from rankbridge._plan.verdict import Evidence, Verdict, bundle
from rankbridge._sync.events import Events
from rankbridge._sync.function import FunctionCall
from rankbridge._sync.hold import Hold
from rankbridge._sync.queue import Queue
from rankbridge._sync.rank import Rank
from rankbridge._sync.stream import GangStream
from rankbridge._sync.submitted import Submitted
from rankbridge._transport.shared_memory import SharedMemory
from rankbridge._transport.targets import Target, resolve
from rankbridge._transport.threads.channels import Channels
from rankbridge._transport.threads.renewing import Renewing
from rankbridge._transport.tokens import check_near, find_token
from rankbridge.errors import (
    GroupExistsError,
    InvalidArgumentError,
    RankBridgeError,
    UnavailableError,
    UnknownOperationError,
    gang_error,
)

if TYPE_CHECKING:
    import torch

T = TypeVar("T")

LEASE = 30.0
"""How long the ranks keep a session whose controller is silent, in seconds, if `lease` is not given."""


def connect(
    target: Target,
    *,
    tls: grpc.ChannelCredentials | None = None,
    token: str | None = None,
    insecure_token: bool = False,
    session: bool = True,
    lease: float | None = LEASE,
    timeout: float = 30.0,
    calls: Calls = "gang",
    shared_memory: bool = True,
) -> Gang:
    """Connects to every rank of a gang.

    Args:
        target: Path of an endpoints file, its dict, or each rank's gRPC target (or targets) by rank. Of a
            rank's several endpoints, a unix socket that exists on this machine is preferred.
        tls: Credentials for TLS, from ``grpc.ssl_channel_credentials``. None: no TLS.
        token: What shows ranks at TCP endpoints what this program may do. None: the endpoints file's, or that of the
            file which ``RANKBRIDGE_TOKEN_FILE`` names, if there is one.
        insecure_token: True: shows the token to other hosts without TLS, too, where whoever hears the network has it.
            So does ``RANKBRIDGE_INSECURE_TOKEN=1`` in the environment.
        session: True: opens a session on every rank, which owns the refs made through this gang and is closed
            with it. False: refs belong to the ranks' shared sessions and live until they are released.
        lease: How long the ranks keep the gang's sessions when nothing is heard of this process, in seconds. They
            are renewed in the background, three times in that time, as long as the gang is open. None or 0: until
            they are closed, however long that takes.
        timeout: Default longest time of a call, in seconds.
        calls: How collectives are called: "gang", as one call to one rank, which passes it on; or "ranks", each rank
            at once. `calls` of a single call tells otherwise.
        shared_memory: True: large tensors come from ranks at unix sockets, and go to them, by memory that both share,
            where that is possible; ``Rank.transfers`` counts them. An array that was fetched so lies in that
            memory, and is the caller's own. False, and without a session: always over gRPC.

    Returns:
        The gang; use it in a ``with`` statement, or close it.

    Raises:
        InvalidArgumentError: The target is malformed, or another host would be shown a token without TLS.
        OSError: The file cannot be read.
        GangError: A session could not be opened on every rank (``UnavailableError``: a rank is not there).
    """
    targets = resolve(target, secure=tls is not None)
    shown = find_token(target, token)
    if shown is not None and tls is None and not insecure_token:
        check_near(targets)
    session_id = new_id() if session else ""
    shared = SharedMemory(targets, session_id) if session and shared_memory else None
    gang = Gang(
        Channels(targets, tls, shared, shown),
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


class Gang(GangCore[Rank]):
    """All ranks of a job: ``gang.all_reduce(refs)``, ``gang[2]``, ``len(gang)``.

    Lists of refs and values are in group order, one for each member; for "world" that is by rank. A call goes to all
    ranks at once, and returns or raises when every rank's outcome is known. A failure raises one ``GangError`` that is
    also of the cause's class and has every rank's outcome. The causes named at each method are definite: nothing has
    happened on any rank, no input has changed, and the group is as good as before.

    ``**options`` are ``CallOptions``: `group` (a ``Group`` or its name, "world" if not given), `timeout` in seconds,
    `operation_id`, `generation`, `calls`.

    Gathers have one of these layouts, here for n members with tensors [a, b]:

    - "concatenated": one tensor, side by side along `dim`, the last if not given: [a, n b].
    - "stacked": one tensor with a dimension more, at place `dim`, the first if not given: [n, a, b]; ``torch.stack``.
    - "list": a tensor for each member. As ``torch.distributed.all_gather``.

    The members' shapes are alike but for `sizes`, which every caller gives; or they are `ragged`: then the members
    exchange their shapes, which may differ along `dim` where they are concatenated, and in every way in a list.

    Values are whatever ``to_value`` takes, of any size; results are as ``from_value`` gives them.

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
        calls: Calls = "gang",
    ) -> None:
        """Made by ``connect``."""
        super().__init__(targets, session_id=session_id, timeout=timeout, calls=calls)
        self._channels = channels
        self._lease = lease
        self._period = lease / 3 if lease else None
        self._renewing: Renewing | None = None
        # The sessions that are open, which are renewed.
        self._kept: dict[str, None] = {}
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

    # --- of CollectiveService: written by scripts/methods.py from the proto, but for what is elsewhere by hand

    def barrier(self, **options: Unpack[CallOptions]) -> None:
        """Returns when every member has called."""
        members = self._members(options.get("group", "world"))
        self._channels.run_all(self._on_members(members, ops.OPERATIONS["barrier"], **options))

    def broadcast(
        self,
        refs: Sequence[Ref],
        *,
        src_rank_in_group: int = 0,
        in_place: bool = False,
        **options: Unpack[CallOptions],
    ) -> list[Ref]:
        """Gives every member a tensor equal to the source's.

        Args:
            refs: One ref of each member, in group order. At the source: what is sent. Elsewhere: a tensor of equal
                dtype and shape, which says what is expected.
            src_rank_in_group: Rank in the group whose tensor is sent, 0 to the group's size - 1.
            in_place: True: the result takes the place of the input, under the same ref. False: it gets a new ref.
            **options: See the class.

        Returns:
            For each member, in group order: a ref on the result.

        Raises:
            GangError: ``RankOutOfRangeError``: there is no such source; ``MismatchError``: the members' dtypes,
                shapes or sources differ.
        """
        return self._channels.run_all(
            self._on_refs(
                refs,
                ops.OPERATIONS["broadcast"],
                src_rank_in_group=src_rank_in_group,
                in_place=in_place,
                **options,
            )
        )

    @overload
    def gather(
        self,
        refs: Sequence[Ref],
        *,
        dst_rank_in_group: int = 0,
        dim: int | None = None,
        sizes: Sequence[int] | None = None,
        layout: Literal["concatenated", "stacked"] = "concatenated",
        ragged: bool = False,
        **options: Unpack[CallOptions],
    ) -> list[Ref | None]: ...
    @overload
    def gather(
        self,
        refs: Sequence[Ref],
        *,
        dst_rank_in_group: int = 0,
        dim: int | None = None,
        sizes: Sequence[int] | None = None,
        layout: Literal["list"],
        ragged: bool = False,
        **options: Unpack[CallOptions],
    ) -> list[list[Ref] | None]: ...
    def gather(
        self,
        refs: Sequence[Ref],
        *,
        dst_rank_in_group: int = 0,
        dim: int | None = None,
        sizes: Sequence[int] | None = None,
        layout: GatherLayout = "concatenated",
        ragged: bool = False,
        **options: Unpack[CallOptions],
    ) -> list[Any]:
        """Gives the destination the members' tensors, put together in group order; the others None.

        With `ragged` and `dim` 0 this is torchgfn's ``gather_distributed_data``.

        Args:
            refs: One ref of each member, in group order; equal dtype and shape on all members but for `sizes`, one
                dimension or more.
            dst_rank_in_group: Rank in the group that receives, 0 to the group's size - 1.
            dim: Dimension along which to concatenate; negative counts from the last. None: -1, the last. Of a
                stack: the place of the new dimension, 0 if absent. Of a list, nothing is laid out along it.
            sizes: Size of every member's tensor along `dim`, by rank in group, each 0 or more; this rank's own is
                its tensor's. The same on all members. None: all tensors are alike.
            layout: How the tensors are put together: "concatenated" (one tensor, the members' side by side along
                `dim`), "stacked" (one with one dimension more, at place `dim`, along which they follow one another)
                or "list" (one for each member).
            ragged: True: shapes may differ, as far as the layout allows, and the members exchange them; `sizes`
                must be empty.
            **options: See the class.

        Returns:
            For each member, in group order: at the destination a ref on the result, or of a list a list of refs by
            rank in group; elsewhere None.

        Raises:
            GangError: ``InvalidArgumentError``: the tensors have no such dimension, or a member's is not of its
                size; ``RankOutOfRangeError``: there is no such destination; ``MismatchError``: the members' dtypes,
                shapes, dims, sizes, layouts or destinations differ.
        """
        return self._channels.run_all(
            self._on_refs(
                refs,
                ops.OPERATIONS["gather"],
                dst_rank_in_group=dst_rank_in_group,
                dim=dim,
                sizes=sizes,
                layout=layout,
                ragged=ragged,
                **options,
            )
        )

    def all_reduce(
        self,
        refs: Sequence[Ref],
        *,
        op: ReduceOp = "sum",
        in_place: bool = False,
        **options: Unpack[CallOptions],
    ) -> list[Ref]:
        """Gives every member the element-wise reduction of all members' tensors.

        Args:
            refs: One ref of each member, in group order; equal dtype and shape on all members.
            op: How elements are combined: "sum" (of bool: or), "product" (of bool: and), "min", "max", "avg" (no
                integers), or of the bits of integers and bools "band", "bor", "bxor".
            in_place: True: the result takes the place of the input, under the same ref. False: it gets a new ref.
            **options: See the class.

        Returns:
            For each member, in group order: a ref on the result.

        Raises:
            GangError: ``UnsupportedDtypeError``: the backend has no such reduction; ``MismatchError``: the members'
                dtypes, shapes or ops differ.
        """
        return self._channels.run_all(
            self._on_refs(refs, ops.OPERATIONS["all_reduce"], op=op, in_place=in_place, **options)
        )

    @overload
    def all_gather(
        self,
        refs: Sequence[Ref],
        *,
        dim: int | None = None,
        sizes: Sequence[int] | None = None,
        layout: Literal["concatenated", "stacked"] = "concatenated",
        ragged: bool = False,
        **options: Unpack[CallOptions],
    ) -> list[Ref]: ...
    @overload
    def all_gather(
        self,
        refs: Sequence[Ref],
        *,
        dim: int | None = None,
        sizes: Sequence[int] | None = None,
        layout: Literal["list"],
        ragged: bool = False,
        **options: Unpack[CallOptions],
    ) -> list[list[Ref]]: ...
    def all_gather(
        self,
        refs: Sequence[Ref],
        *,
        dim: int | None = None,
        sizes: Sequence[int] | None = None,
        layout: GatherLayout = "concatenated",
        ragged: bool = False,
        **options: Unpack[CallOptions],
    ) -> list[Any]:
        """Gives every member all members' tensors, put together in group order.

        As vLLM's ``all_gather``, and with `sizes` its ``all_gatherv``, but along every dimension: vLLM knows the
        first alone. As a list and `ragged` this is OLMo-core's ``all_gather`` of tensors of unequal shapes.

        Args:
            refs: One ref of each member, in group order; equal dtype and shape on all members but for `sizes`, one
                dimension or more.
            dim: Dimension along which to concatenate; negative counts from the last. None: -1, the last. Of a
                stack: the place of the new dimension, 0 if absent. Of a list, nothing is laid out along it.
            sizes: Size of every member's tensor along `dim`, by rank in group, each 0 or more; this rank's own is
                its tensor's. The same on all members. None: all tensors are alike.
            layout: How the tensors are put together: "concatenated" (one tensor, the members' side by side along
                `dim`), "stacked" (one with one dimension more, at place `dim`, along which they follow one another)
                or "list" (one for each member).
            ragged: True: shapes may differ, as far as the layout allows, and the members exchange them; `sizes`
                must be empty.
            **options: See the class.

        Returns:
            For each member, in group order: a ref on the result, or of a list a list of refs by rank in group.

        Raises:
            GangError: ``InvalidArgumentError``: the tensors have no such dimension, or a member's is not of its
                size; ``MismatchError``: the members' dtypes, shapes, dims, sizes or layouts differ.
        """
        return self._channels.run_all(
            self._on_refs(
                refs,
                ops.OPERATIONS["all_gather"],
                dim=dim,
                sizes=sizes,
                layout=layout,
                ragged=ragged,
                **options,
            )
        )

    def reduce(
        self,
        refs: Sequence[Ref],
        *,
        op: ReduceOp = "sum",
        dst_rank_in_group: int = 0,
        **options: Unpack[CallOptions],
    ) -> list[Ref | None]:
        """Gives the destination the element-wise reduction of all members' tensors; the others None.

        As ``torch.distributed.reduce``, but no input changes.

        Args:
            refs: One ref of each member, in group order; equal dtype and shape on all members.
            op: How elements are combined: "sum" (of bool: or), "product" (of bool: and), "min", "max", "avg" (no
                integers), or of the bits of integers and bools "band", "bor", "bxor".
            dst_rank_in_group: Rank in the group that receives, 0 to the group's size - 1.
            **options: See the class.

        Returns:
            For each member, in group order: at the destination a ref on the result, elsewhere None.

        Raises:
            GangError: ``UnsupportedDtypeError``: the backend has no such reduction; ``RankOutOfRangeError``: there
                is no such destination; ``MismatchError``: the members' dtypes, shapes, ops or destinations differ.
        """
        return self._channels.run_all(
            self._on_refs(
                refs, ops.OPERATIONS["reduce"], op=op, dst_rank_in_group=dst_rank_in_group, **options
            )
        )

    def scatter(
        self,
        refs: Sequence[Ref],
        *,
        src_rank_in_group: int = 0,
        dim: int = 0,
        sizes: Sequence[int] | None = None,
        **options: Unpack[CallOptions],
    ) -> list[Ref]:
        """Gives every member its part of the source's tensor, divided in group order.

        The parts are those of ``torch.chunk``, as ``torch.distributed.scatter`` gives them: of [8, 3] and four
        members, [2, 3] along dimension 0. With `sizes` they are those of ``torch.split``, as MPI's ``Scatterv``
        gives them.

        Args:
            refs: One ref of each member, in group order. At the source: the whole, whose size along `dim` is a
                multiple of the group's size, or the sum of `sizes`. Elsewhere: a tensor of the part's dtype and
                shape, which says what is expected. They stay as they are.
            src_rank_in_group: Rank in the group whose tensor is divided, 0 to the group's size - 1.
            dim: Dimension along which to divide; negative counts from the last. 0: the first.
            sizes: Size of every member's part along `dim`, by rank in group, each 0 or more; their sum is the size
                of the source's tensor along `dim`. The same on all members. None: equal parts.
            **options: See the class.

        Returns:
            For each member, in group order: a ref on the member's part.

        Raises:
            GangError: ``InvalidArgumentError``: the source's tensor cannot be divided equally along `dim`, or not
                into `sizes`, or a member's is not of its size; ``RankOutOfRangeError``: there is no such source;
                ``MismatchError``: a member expects a part of another dtype or shape, or the dims, sources or sizes
                differ.
        """
        return self._channels.run_all(
            self._on_refs(
                refs,
                ops.OPERATIONS["scatter"],
                src_rank_in_group=src_rank_in_group,
                dim=dim,
                sizes=sizes,
                **options,
            )
        )

    def reduce_scatter(
        self,
        refs: Sequence[Ref],
        *,
        op: ReduceOp = "sum",
        dim: int = -1,
        sizes: Sequence[int] | None = None,
        **options: Unpack[CallOptions],
    ) -> list[Ref]:
        """Gives every member its part of the element-wise reduction of all members' tensors, divided in group order.

        As vLLM's ``reduce_scatter``, and with `sizes` its ``reduce_scatterv``: of [4, 8] on each of four members,
        [4, 2] along the last dimension. From the third dimension on vLLM divides in the wrong order; this does not.

        Args:
            refs: One ref of each member, in group order; equal dtype and shape on all members, one dimension or
                more.
            op: How elements are combined: "sum" (of bool: or), "product" (of bool: and), "min", "max", "avg" (no
                integers), or of the bits of integers and bools "band", "bor", "bxor".
            dim: Dimension along which to divide; negative counts from the last.
            sizes: Size of every member's part along `dim`, by rank in group, each 0 or more; their sum is the
                tensor's size along `dim`. The same on all members. None: equal parts.
            **options: See the class.

        Returns:
            For each member, in group order: a ref on the member's part.

        Raises:
            GangError: ``InvalidArgumentError``: the tensors cannot be divided equally along `dim`, or not into
                `sizes`; ``UnsupportedDtypeError``: the backend has no such reduction; ``MismatchError``: the
                members' dtypes, shapes, ops, dims or sizes differ.
        """
        return self._channels.run_all(
            self._on_refs(refs, ops.OPERATIONS["reduce_scatter"], op=op, dim=dim, sizes=sizes, **options)
        )

    def all_to_all(
        self,
        refs: Sequence[Ref],
        *,
        dim: int = 0,
        sizes: Sequence[Sequence[int]] | None = None,
        **options: Unpack[CallOptions],
    ) -> list[Ref]:
        """Gives every member its parts of all members' tensors, concatenated in group order.

        As ``torch.distributed.all_to_all_single``, but along any dimension: what each member gets is what it is
        sent first by the first member, then by the second, and so on.

        Args:
            refs: One ref of each member, in group order, one dimension or more; equal dtype on all members, and
                equal shape but for the sizes.
            dim: Dimension along which to divide and to concatenate; negative counts from the last. 0: the first.
            sizes: A row for each member, in group order: size along `dim` of what the member sends to each member,
                by rank in group, each 0 or more; they add up to the tensor's. None: equal parts, of tensors that
                are all alike.
            **options: See the class.

        Returns:
            For each member, in group order: a ref on what the member got.

        Raises:
            GangError: ``InvalidArgumentError``: a member's tensor cannot be divided so; ``MismatchError``: the
                members' dtypes, shapes or dims differ, or one expects another size than the other sends: every
                member gets both sides, and nothing has moved.
            InvalidArgumentError: `sizes` are not a row for each member. No rank was asked.
        """
        return self._channels.run_all(
            self._on_refs(refs, ops.OPERATIONS["all_to_all"], dim=dim, sizes=sizes, **options)
        )

    def scan(
        self,
        refs: Sequence[Ref],
        *,
        op: ReduceOp = "sum",
        exclusive: bool = False,
        **options: Unpack[CallOptions],
    ) -> list[Ref]:
        """Gives member m the element-wise reduction of the tensors of members 0 to m.

        As MPI's ``Scan``, and exclusive its ``Exscan``. Not every backend has it.

        Args:
            refs: One ref of each member, in group order; equal dtype and shape on all members.
            op: How elements are combined: any reduce op of AllReduce except "avg".
            exclusive: True: of members 0 to m - 1, for member 0 zeros; of sums only. False: of members 0 to m.
            **options: See the class.

        Returns:
            For each member, in group order: a ref on the result.

        Raises:
            GangError: ``UnsupportedOperationError``: the backend has no scan; ``UnsupportedDtypeError``: it has no
                such scan; ``InvalidArgumentError``: an average, or an exclusive scan of anything but sums;
                ``MismatchError``: the members' dtypes, shapes or ops differ.
        """
        return self._channels.run_all(
            self._on_refs(refs, ops.OPERATIONS["scan"], op=op, exclusive=exclusive, **options)
        )

    # --- end of CollectiveService

    # --- of ObjectService: written by scripts/methods.py from the proto, but for what is elsewhere by hand

    def broadcast_object(
        self, value: object, *, src_rank_in_group: int = 0, **options: Unpack[CallOptions]
    ) -> list[Any]:
        """Gives every member the source's value.

        As vLLM's ``broadcast_object``.

        Args:
            value: What is sent. Whatever ``to_value`` takes.
            src_rank_in_group: Rank in the group whose value is sent, 0 to the group's size - 1.
            **options: See the class.

        Returns:
            For each member, in group order: the source's value; at the source, what it gave.

        Raises:
            RankOutOfRangeError: There is no such source. No rank was asked.
        """
        return self._called("broadcast_object", value, src_rank_in_group=src_rank_in_group, **options)

    def scatter_object(
        self, values: Sequence[object], *, src_rank_in_group: int = 0, **options: Unpack[CallOptions]
    ) -> list[Any]:
        """Gives every member its own of the source's values.

        As ``torch.distributed.scatter_object_list``.

        Args:
            values: A list of one value for each member, in group order.
            src_rank_in_group: Rank in the group whose values are sent, 0 to the group's size - 1.
            **options: See the class.

        Returns:
            For each member, in group order: the member's value.

        Raises:
            InvalidArgumentError: It is no list of one for each member. No rank was asked.
            RankOutOfRangeError: There is no such source. No rank was asked.
        """
        return self._called("scatter_object", values, src_rank_in_group=src_rank_in_group, **options)

    def gather_object(
        self, values: Sequence[object], *, dst_rank_in_group: int = 0, **options: Unpack[CallOptions]
    ) -> list[list[Any] | None]:
        """Gives the destination a list of all members' values, in group order; the others None.

        As ``torch.distributed.gather_object``.

        Args:
            values: One value of each member, in group order. Whatever ``to_value`` takes.
            dst_rank_in_group: Rank in the group that receives, 0 to the group's size - 1.
            **options: See the class.

        Returns:
            For each member, in group order: at the destination a list of all values by rank in group, elsewhere
            None.
        """
        return self._called("gather_object", values, dst_rank_in_group=dst_rank_in_group, **options)

    def all_gather_object(self, values: Sequence[object], **options: Unpack[CallOptions]) -> list[list[Any]]:
        """Gives every member a list of all members' values, in group order.

        As ``torch.distributed.all_gather_object``.

        Args:
            values: One value of each member, in group order. Whatever ``to_value`` takes.
            **options: See the class.

        Returns:
            For each member, in group order: a list of all values by rank in group.
        """
        return self._called("all_gather_object", values, **options)

    def all_reduce_value(
        self, values: Sequence[float], *, op: ReduceOp = "sum", **options: Unpack[CallOptions]
    ) -> list[Any]:
        """Gives every member the reduction of all members' numbers.

        As OLMo-core's ``all_reduce_value``, but nothing goes through float32: ints are added exactly and stay ints,
        floats stay float64.

        Args:
            values: One number of each member, in group order: a bool, an int of at most 65,536 bits or a float; the
                same kind on all members.
            op: How they are combined, as AllReduce does. Bools have no "avg", floats no bitwise op; the average of
                ints is a float.
            **options: See the class.

        Returns:
            For each member, in group order: a number of the same kind, but of ints' avg, a float: of floats
            computed in float64, of ints exactly.

        Raises:
            GangError: ``UnsupportedDtypeError``: numbers of this kind have no such op; ``MismatchError``: they are
                not of one kind, or the ops differ.
            InvalidArgumentError: Something is no number. No rank was asked.
        """
        return self._called("all_reduce_value", values, op=op, **options)

    # --- end of ObjectService

    # --- collectives by hand ----------------------------------------------------------------------------------

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
            begun = [it.rank for it in outcomes if it.error is None or it.error.indefinite]
            withdrawn = self._channels.outcomes(self._on(begun, ops.cancel, operation_id))
            error = gang_error(outcomes)
            error.indefinite = not all(
                it.value is True or isinstance(it.error, UnknownOperationError) for it in withdrawn
            )
            raise error
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

    def new_group(
        self, name: str, ranks: Iterable[int], *, exist_ok: bool = False, **options: Unpack[CallOptions]
    ) -> Group:
        """Makes a group.

        Args:
            name: Its name, 1 to 128 bytes, which no other group has.
            ranks: Ranks of the gang, in group order.
            exist_ok: True: gives the group of that name, if there is one of these ranks.
            **options: See the class; `group` is the group whose members make the new one.

        Raises:
            GroupExistsError: There is a group of that name.
        """
        ranks = tuple(ranks)
        calls = self._on_members(
            self._members(options.get("group", "world")), ops.new_group, name, ranks, **options
        )
        try:
            return of_gang((self._channels.run_all(calls))[0])
        except GroupExistsError:
            there = self.group(name) if exist_ok else None
            if there is None or there.ranks != ranks:
                raise
            return there

    def destroy_group(self, group: str | Group, **options: Unpack[MemberOptions]) -> Group:
        """Ends a group, after the calls queued on it, and gives it as it was."""
        ended = self._channels.run_all(
            self._on_members(self._members(group), ops.destroy_group, group, **options)
        )
        return of_gang(ended[0])

    def groups(self) -> list[Group]:
        """Describes every group that any rank is a member of, by name."""
        by_rank = self._channels.run_all(self._on(self._all(), ops.groups))
        known = groups_known(by_rank)
        return [known[name] for name in sorted(known)]

    def status(self) -> list[RankStatus]:
        """Describes every rank.

        Raises:
            GangError: Some ranks could not be reached; its `outcomes` have the others.
        """
        return self._channels.run_all(self._on(self._all(), ops.status))

    def pending(self) -> list[RankPending]:
        """Lists what every rank has accepted and not answered yet, and for whom the groups that it leads wait.

        Ranks are asked one by one: what they say is not of one moment.

        Raises:
            GangError: Some ranks could not be reached; its `outcomes` have the others.
        """
        return self._channels.run_all(self._on(self._all(), ops.pending))

    def record(
        self, *, limit: int = 0, group: str | Group = "", caller: str = ""
    ) -> list[list[RecordedOperation]]:
        """Gives the record of every rank: its last operations. Arguments are as of `Rank.record`.

        Raises:
            GangError: Some ranks could not be reached; its `outcomes` have the others.
        """
        name = ops.group_name(group)
        return self._channels.run_all(
            self._on(self._all(), lambda scope: ops.record(scope, limit=limit, group=name, caller=caller))
        )

    def stacks(self) -> list[list[ThreadStack]]:
        """Gives the stacks of the threads of every rank's process that run Python, the main one first.

        Raises:
            GangError: Some ranks could not be reached; its `outcomes` have the others.
        """
        return self._channels.run_all(self._on(self._all(), ops.stacks))

    def diagnose(self, *, patience: float = 2.0) -> Verdict:
        """Says what is wrong: which rank keeps which others waiting, in which call, and what it does instead.

        Every rank is looked at twice, 0.2 s apart; one that does not answer within 2 s is judged by what the others and
        its host know of it. If nobody waits, the verdict is on what has failed last in a group.

        Args:
            patience: Seconds that ranks may wait for each other without being called stuck.

        Raises:
            GangError: No rank could be reached.
        """
        answered = self._evidence()
        (call,) = self._on(
            [min(answered)], lambda scope: ops.diagnose(scope, answered.values(), patience=patience)
        )
        return self._channels.run(call)

    def evidence(self) -> str:
        """Gives all that a verdict needs of every rank that answers, for ``rankbridge doctor --read FILE``.

        It has stacks, and names of files, functions and hosts; it has no tensors and no variables.

        Returns:
            JSON.

        Raises:
            GangError: No rank could be reached.
        """
        return bundle((self._evidence()).values())

    def _evidence(self) -> dict[int, Evidence]:
        """What each rank that answers says of itself."""
        outcomes = self._channels.outcomes(self._on(self._all(), ops.evidence))
        answered = {it.rank: it.value for it in outcomes if it.error is None and it.value is not None}
        if not answered:
            raise gang_error(outcomes)
        return answered

    def metrics(self) -> list[list[MetricFamily]]:
        """Asks every rank for what it has counted, if it was started with ``--metrics``, and what it holds.

        Raises:
            GangError: Some ranks could not be reached; its `outcomes` have the others.
        """
        return self._channels.run_all(self._on(self._all(), ops.metrics))

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
        opens = [call for kept in tuple(self._kept) for call in self._opens(kept)]
        # Some ranks may be new, and not serve yet.
        self._run_again([replace(call, wait_for_ready=True) for call in opens])
        return formed

    # --- tensors on the ranks ----------------------------------------------------------------------------

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
        members = self._members(group)
        inits = [init] * len(members) if init is None or isinstance(init, Init) else list(init)
        pairs = self._paired(members, inits, "create")
        return self._channels.run_all(
            [ops.create(scope, dtype, shape, init=own, device=device) for scope, own in pairs]
        )

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

    # --- values by value, and maps of tensors ------------------------------------------------------------

    def broadcast_object_list(
        self, values: Sequence[object], *, src_rank_in_group: int = 0, **options: Unpack[CallOptions]
    ) -> list[list[Any]]:
        """Gives every member the source's list of values, as vLLM's ``broadcast_object_list``.

        Unlike there, the others need no list of the same length to receive it in.

        Args:
            values: What the source sends: a list or a tuple.
            src_rank_in_group: Who sends it.
            **options: See the class.

        Returns:
            The list, once for each member, in group order.

        Raises:
            InvalidArgumentError: It is no list. No rank was asked.
        """
        given = ops.checked_list("broadcast_object_list", values)
        return self._called("broadcast_object", given, src_rank_in_group=src_rank_in_group, **options)

    def broadcast_tensor_dict(
        self,
        tensors: Mapping[Any, Any],
        *,
        src_rank_in_group: int = 0,
        metadata_group: str | Group | None = None,
        **options: Unpack[CallOptions],
    ) -> list[dict[Any, Any]]:
        """Gives every member the source's map, with tensors of its own, as vLLM's ``broadcast_tensor_dict``.

        Unlike there, refs in maps in the map are sent, strided tensors arrive as they were, and so do empty ones.

        Args:
            tensors: A map of values, maps in it included; its refs are tensors of the source, of one session.
            src_rank_in_group: Who sends it.
            metadata_group: A group of the same members, which vLLM sends the keys over. It changes nothing here.
            **options: See the class.

        Returns:
            The map, once for each member, in group order: at the source with the refs that it gave, elsewhere with
            refs on new tensors there, in the same session.

        Raises:
            InvalidArgumentError: It is no map, its refs are not the source's, or the metadata's group has other
                members. No rank was asked to send.
        """
        group = options.get("group", "world")
        if metadata_group is not None:
            members, others = self._members(group), self._members(metadata_group)
            if set(members) != set(others):
                raise InvalidArgumentError(
                    "the metadata's group has other members",
                    group=ops.group_name(group),
                    operation="broadcast_tensor_dict",
                    expected=f"ranks {listed(members)}",
                    got=f"{ops.group_name(metadata_group)!r} of ranks {listed(others)}",
                )
        return self._called("broadcast_tensor_dict", tensors, src_rank_in_group=src_rank_in_group, **options)

    # --- several collectives as one operation ------------------------------------------------------------

    def coalesce(self, collectives: Sequence[Collective], **options: Unpack[CallOptions]) -> list[Any]:
        """Does several collectives of one group as one operation: one call and one admission for all of them.

        They run one after another, and all results are there at once: none sees what another gives, not even what
        it did in place. If one fails, none has happened::

            sums, rows = gang.coalesce([
                ("all_reduce", gradients, {"op": "avg", "in_place": True}),
                ("all_gather", counts, {"dim": 0}),
            ])

        Args:
            collectives: For each the name of its method, the refs that this takes (one of each member, in group order,
                all of one session; None for a barrier), and its options, without those of the call: a tuple of one to
                three.
            **options: Of the one call: ``CallOptions``.

        Returns:
            For each collective, in order, what its method gives.

        Raises:
            InvalidArgumentError: A collective is malformed, or is none on tensors. No rank was asked.
            GangError: One cannot be done, or differs among the members; the message tells which.
        """
        return self._of_each("coalesce", collectives, dict(options))

    # --- programs ----------------------------------------------------------------------------------------

    def run(
        self, program: Program, *, keep: Sequence[Named] = (), **options: Unpack[CallOptions]
    ) -> list[Any]:
        """Runs a program, on all members, as one operation: one call and one admission for all of its steps.

        The ranks go from step to step by themselves. What is kept, and what the program has changed in place, is
        there when all of it is done, or nothing is.

        Args:
            program: The program.
            keep: What is kept of that which its steps give: refs for it are made. All else is freed.
            **options: Of the one call: ``CallOptions``. Until its `timeout` the members must have been admitted, and
                so long the call waits, for all steps together. A program that takes longer goes on: give it the time
                that it needs; or begin it with ``gang.submit("run_program", program, keep=[...])``, and wait for its
                `result` with another timeout.

        Returns:
            For each name in `keep`, in order, what the collective's method gives: of all_reduce a ref of each member,
            in group order.

        Raises:
            InvalidArgumentError: The program is empty or still in a loop, its refs are not one of each member, or
                `keep` has names of another. No rank was asked.
            GangError: A step cannot be done, or differs among the members; the message tells which, and nothing is
                done. ``DeadlineExceededError``: it has not ended in time; if `indefinite`, it goes on, and
                ``gang.find`` has its outcome by its `operation_id`.
        """
        return self._of_each("run_program", program, {**options, "keep": keep})

    # --- streams -----------------------------------------------------------------------------------------

    def stream(self, group: str | Group = "world") -> GangStream:
        """Opens a stream of operations of one group: gang calls, of which the next is sent while one runs.

        For example::

            with gang.stream() as stream:
                for batch in batches:
                    stream.submit("all_reduce", batch, in_place=True)
                total = stream.submit("all_gather", parts)
            rows = total.result()

        Args:
            group: The group, or its name. A name other than "world" is looked up with each operation.
        """
        return GangStream(self, group)

    # --- graphs ------------------------------------------------------------------------------------------

    @contextlib.contextmanager
    def graph_capture(self, name: str | None = None, *, group: str | Group = "world") -> Iterator[Graph]:
        """Records what is done in a group inside a ``with`` statement, as vLLM's ``graph_capture``.

        It records the collectives on tensors that the current session does in the group. The calls inside run as
        ever. It records none that fails, and none on refs of other sessions. A replay reads the same refs, as they
        are then, and puts the results into the refs that the recorded calls gave.

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
        graph = self.begin_capture(name, group=group)
        try:
            yield graph
        except BaseException:
            self._carried_out(graph_procedures.dropping(self, graph))
            raise
        self._carried_out(graph_procedures.ending(self, graph))

    def begin_capture(self, name: str | None = None, *, group: str | Group = "world") -> Graph:
        """Begins to record on every member of a group, or on none: see `graph_capture`."""
        return self._carried_out(graph_procedures.beginning(self, name, group))

    def end_capture(self, *, group: str | Group = "world") -> Graph:
        """Ends what the session records in a group, and keeps it as a graph, on every member or on none.

        Raises:
            GangError: ``UnknownGraphError``: it records nothing there; ``ResourceExhaustedError``: it was too much.
        """
        ranks, within = self._members(group), ops.group_name(group) or "world"
        graph = Graph(name="", group=within, session_id=self.session_id, ranks=ranks)
        return self._carried_out(graph_procedures.ending(self, graph))

    def replay(self, graph: str | Graph, **options: Unpack[CallOptions]) -> list[Any]:
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
        return self._of_each("replay", graph, dict(options))

    def release_graph(self, graph: str | Graph) -> Graph:
        """Forgets a graph, on every rank that has it, and gives it as it was. Its refs stay.

        Args:
            graph: The graph, or its name in the current session.

        Raises:
            GangError: ``UnknownGraphError``: no rank has it.
        """
        return self._carried_out(graph_procedures.releasing(self, graph))

    # --- functions of the user's own ---------------------------------------------------------------------

    def call(self, function: str, /, *args: object, **kwargs: object) -> list[Any]:
        """Calls a function of a module that was loaded into the ranks, on every rank, and waits until all return.

        The calls of one group run one after another, in one order on all its members, beside its other operations.

        Args:
            function: Its name.
            *args: Arguments by place: whatever ``to_value`` takes, the same for every rank; an ``Each`` has one value
                for each; of refs of all ranks, each rank gets its own. A ref arrives as the tensor that it stands for.
            **kwargs: Arguments by name, likewise.

        Returns:
            What it returned on each rank, by rank; its tensors are new refs.

        Raises:
            GangError: ``FunctionFailedError``: it raised, and `raised` has type, text and traceback; ranks that waited
                for the one on which it raised were released. ``UnknownFunctionError``. ``InvalidArgumentError``: the
                arguments do not fit its parameters. ``DeadlineExceededError``: it has not returned, and goes on.
        """
        return self._called("call_function", Arguments(args, kwargs), function=function)

    def function(self, name: str, **options: Unpack[CallOptions]) -> GangFunction:
        """Gives a function of the ranks, to be called with options.

        Args:
            name: Its name.
            **options: ``CallOptions``: of each call of it.
        """
        return GangFunction(self, name, options)

    def functions(self) -> list[FunctionDescription]:
        """Lists the functions that the ranks offer, by name."""
        return self._channels.run(ops.functions(self._scope(0)))

    def named(
        self, pattern: str = "*", *, group: str | Group = "world"
    ) -> dict[str, list[NamedTensor | None]]:
        """Finds the tensors that the members' processes have exposed (``rankbridge_server.expose``).

        Args:
            pattern: Of names, as a shell's: "model.layers.*.weight".
            group: The group whose members are asked, or its name.

        Returns:
            By name: for each member, in group order, its tensor; None: it has none of that name.
        """
        return self._carried_out(asking(self, "named", pattern, group, lambda it: NamedTensor(**it)))

    def take(self, pattern: str, *, group: str | Group = "world") -> dict[str, list[Ref | None]]:
        """Copies exposed tensors, as they are now, into new refs. Arguments and result are as of `named`."""
        return self._carried_out(asking(self, "take", pattern, group))

    def summary(self, pattern: str = "*", *, group: str | Group = "world") -> dict[str, list[Summary | None]]:
        """Summarises exposed tensors on their ranks: norm, extremes, NaNs, a hash. Arguments are as of `named`."""
        return self._carried_out(asking(self, "summary", pattern, group, lambda it: Summary(**it)))

    def compare(self, pattern: str = "*", *, group: str | Group = "world") -> list[Comparison]:
        """Finds exposed tensors whose replicas differ, on which ranks, and by how much.

        Tensors are compared by their hashes; of those that differ, the reference's goes to the other members by the
        backend, and to the controller nothing. Arguments are as of `named`.

        Returns:
            Those that differ, by name. Empty: all replicas are alike.
        """
        return self._carried_out(comparing(self, pattern, group))

    # --- message queues ----------------------------------------------------------------------------------

    def new_queue(
        self,
        name: str,
        *,
        writer_rank_in_group: int = 0,
        reader_ranks_in_group: Iterable[int] | None = None,
        max_chunk_bytes: int | None = None,
        max_chunks: int | None = None,
        **options: Unpack[CallOptions],
    ) -> Queue:
        """Makes a message queue, on all members of a group or on none.

        Args:
            name: Its name, 1 to 128 bytes, unique in the group.
            writer_rank_in_group: Who writes.
            reader_ranks_in_group: Who reads. None: all but the writer.
            max_chunk_bytes: Size of the room for one value, in bytes; larger ones travel on their own. None: 4 MiB.
            max_chunks: Values that may be unread by the slowest reader, at most 1,024. None: 6.
            **options: ``CallOptions``.

        Raises:
            GangError: ``NameExistsError``; ``RankOutOfRangeError``; ``InvalidArgumentError``: the writer is to read,
                or a size is too large; ``PeerMissingError``.
        """
        own = {
            "writer_rank_in_group": writer_rank_in_group,
            "reader_ranks_in_group": None if reader_ranks_in_group is None else tuple(reader_ranks_in_group),
            "max_chunk_bytes": max_chunk_bytes,
            "max_chunks": max_chunks,
        }
        procedure = queue_procedures.making(self, name, {**options, **own})
        return Queue(self, self._carried_out(procedure))

    def queue(self, name: str, *, group: str | Group = "world") -> Queue:
        """Gives a queue that is there: also one that another process has made.

        Raises:
            UnknownQueueError: No member of the group knows it.
            GangError: Some member could not be asked.
        """
        return Queue(self, self._carried_out(queue_procedures.finding(self, name, group)))

    # --- many groups, meshes, layouts --------------------------------------------------------------------

    def hosts(self) -> tuple[str, ...]:
        """Gives the name of each rank's host, by rank.

        Raises:
            GangError: Some rank could not be asked.
        """
        return tuple(status.host for status in self.status())

    def group(self, name: str) -> Group:
        """Describes one group, and where its members run, as far as ranks answer.

        Args:
            name: Its name. Empty: "world".

        Raises:
            UnknownGroupError: No rank that answers is a member of it.
            GangError: No rank answers.
        """
        return self._carried_out(group_procedures.describing(self, name))

    def new_groups(
        self, groups: Iterable[GroupLike], *, timeout: float | None = None, generation: int = 0
    ) -> list[Group]:
        """Makes several groups: all of them, or none.

        They are made one after the other, each on every rank before the next begins. If one fails, or the waiting is
        interrupted, those before it are ended again; an error after which some may be left has a note that names
        them.

        Args:
            groups: For each, its name and its ranks in group order, or a ``Group``.
            timeout: Longest time for each of them, in seconds. None: the gang's default.
            generation: Generation that is meant. 0: the current one.

        Returns:
            The groups, in the order of the argument.

        Raises:
            InvalidArgumentError: A description is malformed. No rank was asked.
            GroupExistsError: There is a group of one of the names. None was made.
            GangError: One could not be made on every rank.
        """
        return self._carried_out(
            group_procedures.making(self, groups, timeout=timeout, generation=generation)
        )

    def destroy_groups(self, groups: Iterable[str | Group], *, timeout: float | None = None) -> list[Group]:
        """Ends those of the groups that exist, each after the calls queued on it.

        Args:
            groups: Names, or groups: ``mesh.groups()``, ``layout.groups()``.
            timeout: Longest time for each of them, in seconds. None: the gang's default.

        Returns:
            Those that were ended, as they were.

        Raises:
            GangError: Some could not be ended; a note names them. All were tried.
        """
        return self._carried_out(group_procedures.ending(self, groups, timeout=timeout))

    def new_mesh(
        self,
        axes: Mapping[str, int],
        *,
        ranks: Iterable[int] | None = None,
        name: str = "mesh",
        flattened: Mapping[str, Iterable[str]] | None = None,
        local: bool = False,
        timeout: float | None = None,
        generation: int = 0,
    ) -> Mesh:
        """Lays ranks out along named axes, and makes a group for each line of each axis, as `new_groups` does.

        Args:
            axes: Size of each axis, outermost first: ``{"dp": 2, "tp": 2}``. One may be -1: what the others leave.
            ranks: The ranks in row-major order. None: all of the gang.
            name: What the names of the groups begin with.
            flattened: Axes that each flattened axis stands for: ``{"dp": ["dp_replicate", "dp_shard"]}``.
            local: Whether to have the axis "local", of those on one host.
            timeout: Longest time for each group, in seconds. None: the gang's default.
            generation: Generation that is meant. 0: the current one.

        Raises:
            InvalidArgumentError: The sizes do not fit the number of ranks. No rank was asked.
            GroupExistsError: There is a group of one of the names. None was made.
            GangError: A group could not be made on every rank.
        """
        every = self._all() if ranks is None else ranks
        mesh = Mesh.plan(axes, every, name=name, flattened=flattened)
        procedure = group_procedures.making_mesh(
            self, mesh, local=local, timeout=timeout, generation=generation
        )
        return self._carried_out(procedure)

    def mesh(
        self,
        axes: Mapping[str, int],
        *,
        ranks: Iterable[int] | None = None,
        name: str = "mesh",
        flattened: Mapping[str, Iterable[str]] | None = None,
        local: bool = False,
    ) -> Mesh:
        """Gives a mesh whose groups are there: made by another controller, or again with the current generation.

        Arguments are as of `new_mesh`.

        Raises:
            InvalidArgumentError: The sizes do not fit the number of ranks, or groups have other members: the
                gang has become smaller.
            UnknownGroupError: Groups are missing.
            GangError: Some rank could not be asked.
        """
        every = self._all() if ranks is None else ranks
        mesh = Mesh.plan(axes, every, name=name, flattened=flattened)
        return self._carried_out(group_procedures.finding_mesh(self, mesh, local=local))

    def new_layout(self, layout: Layout, *, timeout: float | None = None, generation: int = 0) -> Layout:
        """Makes the groups of a role layout, as `new_groups` does.

        Args:
            layout: ``Layout.by_host(gang.hosts(), ...)``, or ``Layout.in_blocks(len(gang), ...)``.
            timeout: Longest time for each group, in seconds. None: the gang's default.
            generation: Generation that is meant. 0: the current one.

        Raises:
            InvalidArgumentError: It is for another number of ranks. No rank was asked.
            GroupExistsError: There is a group of one of the names. None was made.
            GangError: A group could not be made on every rank.
        """
        if layout.size != len(self):
            raise InvalidArgumentError(
                f"layout {layout.name!r} is for a gang of another size",
                phase="check",
                operation="layout",
                expected=f"{len(self)} ranks",
                got=str(layout.size),
            )
        made = self.new_groups(layout.groups(), timeout=timeout, generation=generation)
        return replace(layout, backend=made[0].backend, generation=made[0].generation)

    # --- events ------------------------------------------------------------------------------------------

    def hold(
        self, breakpoint: str, *, ranks: Iterable[int] | None = None, timeout: float | None = None
    ) -> Hold:
        """Sets a breakpoint: ranks are held before the calls that it means, until they are let go.

        Both operations of controllers and what the user's own code calls of torch.distributed are meant. A call that is
        held is not longer in time for it: an operation is withdrawn at its timeout. Sends, receives and queues of
        controllers, and functions that one rank alone calls, are not held; the collectives within those are.

        Args:
            breakpoint: Words, all of which must be true of a call: ``group=dp``, ``kind=all_reduce``, ``number=1200``
                (in its group), ``at=train.py:88``, ``function=step``, ``caller=controller`` or ``script``,
                ``has=nan,inf`` and ``above=1e6`` (one of these is in an input), ``ranks=0-3``. With ``mismatch`` and
                ``slower=0.5``, ranks are held after a call whose members did not agree, or that took longer, in
                seconds. Empty: every call.
            ranks: The ranks on which it is set. None: those that `breakpoint` names, or all.
            timeout: For setting it, in seconds. None: the gang's.

        Raises:
            InvalidArgumentError: The breakpoint cannot be read, or no call can reach it.
            RankOutOfRangeError: The gang has no such rank.
            GangError: It could not be set on some ranks. It is set nowhere then.
        """
        parsed = parse_breakpoint(breakpoint)
        chosen = list(dict.fromkeys(parsed.ranks if ranks is None else ranks)) or list(self._all())
        return Hold(self._channels, self._scope, chosen, parsed, timeout)._begin()

    def events(
        self,
        kinds: Iterable[EventKind] = (),
        *,
        after: Mapping[int, Position] | Position | int | None = None,
        timeout: float | None = None,
    ) -> Events:
        """Watches what happens on every rank.

        Events of one rank come in their order; those of different ranks as they come in.

        Arguments are as of ``Rank.events``; `after` is for every rank or by rank: `position` of the watch before.

        Returns:
            An iterator. A rank that tells nothing more is a ``WatchEnded``, and the watch of the others goes on.
        """
        wanted = tuple(kinds)
        starts = starts_at(after, self._all())
        calls = [watch(self._scope(rank), wanted, start, timeout) for rank, start in starts.items()]
        return Events(self._channels, calls, starts, alone=False)._begin()

    @overload
    def average(self, tensors: Sequence[Ref], **options: Unpack[CallOptions]) -> list[Ref]: ...
    @overload
    def average(
        self, tensors: Mapping[str, Sequence[Ref]], **options: Unpack[CallOptions]
    ) -> dict[str, list[Ref]]: ...
    @overload
    def average(
        self, tensors: Sequence[Mapping[str, Ref]], **options: Unpack[CallOptions]
    ) -> list[dict[str, Ref]]: ...

    def average(
        self,
        tensors: Sequence[Ref] | Mapping[str, Sequence[Ref]] | Sequence[Mapping[str, Ref]],
        **options: Unpack[CallOptions],
    ) -> list[Ref] | dict[str, list[Ref]] | list[dict[str, Ref]]:
        """Averages tensors over the members of a group, in place: one coalesced `all_reduce` with "avg".

        Either all tensors are averaged or none. It divides by the group's size.

        Args:
            tensors: Refs, one of each member; or a map of names to such; or a map of names to refs of each member,
                in group order. Of floating-point or complex dtypes.
            **options: ``CallOptions``.

        Returns:
            The refs, in the form in which they were given.

        Raises:
            InvalidArgumentError: The members' maps have different names. No rank was asked.
            GangError: As of `coalesce`.
        """
        averaged: list[Ref] | dict[str, list[Ref]] | list[dict[str, Ref]] = self._carried_out(
            compositions.averaging(self, tensors, dict(options))
        )
        return averaged

    # --- inside --------------------------------------------------------------------------------------------

    def _members(self, group: str | Group) -> tuple[int, ...]:
        return self._carried_out(members_of(self, group))

    def _called(self, operation: str, given: Any = None, /, **options: Any) -> list[Any]:
        return self._carried_out(calling(self, operation, given, options))

    def _of_each(self, operation: str, given: Any, options: dict[str, Any]) -> list[Any]:
        return self._carried_out(doing_several(self, operation, given, options))

    def _carried_out(self, procedure: Procedure[T]) -> T:
        try:
            calls = next(procedure)
            while True:
                try:
                    outcomes = self._channels.outcomes(calls)
                except BaseException as error:
                    calls = procedure.throw(error)
                else:
                    calls = procedure.send(outcomes)
        except StopIteration as end:
            result: T = end.value
            return result

    def _run_again(self, calls: Sequence[Call[T]]) -> list[T]:
        # A connection to a rank that died may not be known to be lost yet; the next one leads to the new rank.
        try:
            return self._channels.run_all(calls)
        except UnavailableError:
            return self._channels.run_all(calls)

    def _opens(self, session_id: str) -> list[Call[str]]:
        return self._on(self._all(), ops.open_session, session_id, lease=self._lease)

    def _open_session(self, session_id: str) -> None:
        if session_id:
            opens = self._opens(session_id)
            self._kept[session_id] = None
            if self._period is not None and self._renewing is None:
                self._renewing = Renewing(self._period, self._renew)
            self._channels.run_all(opens)

    def _close_session(self, session_id: str) -> None:
        if session_id and not self._channels.closed:
            self._kept.pop(session_id, None)
            timeout = min(self.timeout, CLOSE_TIMEOUT)
            # Errors change nothing: a rank that cannot be reached frees its refs by its own end.
            self._channels.outcomes(self._on(self._all(), ops.close_session, session_id, timeout=timeout))

    def _renew(self) -> None:
        # Errors change nothing: calls in a session that was lost fail by themselves.
        with contextlib.suppress(RankBridgeError):
            self._channels.outcomes(
                [
                    call
                    for kept in tuple(self._kept)
                    for call in self._on(self._all(), ops.renew_session, kept, timeout=self._period)
                ]
            )


class GangFunction:
    """A function of a module that was loaded into the ranks of a gang: ``gang.function("step", timeout=600)``.

    Attributes:
        name: Its name.
    """

    def __init__(self, gang: Gang, name: str, options: CallOptions) -> None:
        """Made by ``Gang.function``."""
        self.name = name
        self._gang = gang
        self._options: dict[str, Any] = {**options, "function": name}

    def __call__(self, *args: object, **kwargs: object) -> list[Any]:
        """Calls it on every member of the group, and waits: see ``Gang.call``."""
        return self._gang._called("call_function", Arguments(args, kwargs), **self._options)

    def start(self, *args: object, **kwargs: object) -> FunctionCall:
        """Calls it likewise, and returns at once: what it gives has its reports, and its result."""
        gang, given, options = self._gang, Arguments(args, kwargs), dict(self._options)
        members = gang._members(options.get("group", "world"))
        calls = member_calls(gang, "call_function", ops.call_function, given, members, options)
        return FunctionCall(
            gang._channels, self.name, calls, lambda rank, call_id: ops.reports(gang._scope(rank), call_id)
        )
