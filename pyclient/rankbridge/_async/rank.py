"""One rank of a gang, for asyncio."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, TypeVar, Unpack, overload

import numpy.typing as npt

from rankbridge._async.events import AsyncEvents
from rankbridge._async.function import AsyncFunctionCall
from rankbridge._async.growths import AsyncRecordWatch
from rankbridge._async.work import AsyncWork
from rankbridge._plan import operations as ops
from rankbridge._plan.calls import Call
from rankbridge._plan.events import EventKind, starts_at, watch
from rankbridge._plan.functions import Arguments, FunctionDescription
from rankbridge._plan.gang_core import with_id
from rankbridge._plan.graph import Graph
from rankbridge._plan.groups import Group
from rankbridge._plan.inits import Init
from rankbridge._plan.metrics import MetricFamily
from rankbridge._plan.operations import (
    CallOptions,
    Collective,
    Expected,
    Form,
    GatherLayout,
    MemberOptions,
    ReduceOp,
)
from rankbridge._plan.pending import RankPending
from rankbridge._plan.positions import Position
from rankbridge._plan.program import Program
from rankbridge._plan.program_steps import Named
from rankbridge._plan.queue import NamedQueue, QueueDescription
from rankbridge._plan.record import RecordedOperation, ThreadStack
from rankbridge._plan.ref import Ref
from rankbridge._plan.status import OperationStatus, RankStatus
from rankbridge._plan.summary import Summary
from rankbridge._plan.tensor import Array, Tensor, TensorLike
from rankbridge._transport.aio.pending import AsyncPending
from rankbridge._transport.shared_memory import Transfers
from rankbridge.errors import RankBridgeError

if TYPE_CHECKING:
    import torch

    from rankbridge._async.gang import AsyncGang

T = TypeVar("T")


class AsyncRank:
    """One rank of a gang: ``gang[2]``.

    Every method raises ``RankBridgeError``, as its subclasses tell. A collective is called on every member of
    its group; called here, it waits for the others to be called too. ``AsyncGang`` describes what each of them does.
    ``**options`` are ``CallOptions``: `group`, `timeout` in seconds, `operation_id` (none unless given), `generation`.

    A send waits for its receive and a receive for its send, each for its own timeout; then the data moves. They meet
    by source, destination and tag, in the order in which they came, and neither wait for the group's collectives nor
    hold them up. A kind is received by its own kind. ``isend`` and ``irecv`` of each kind begin it and give an
    ``AsyncWork`` to wait for. Of all of them:

    - `dst_rank_in_group` is who receives; `src_rank_in_group` who sends, None: whoever does; `tag`, 0 to 2**32 - 1,
      separates messages between the same two.
    - ``RankOutOfRangeError``: there is no such member. ``InvalidArgumentError``: the other member is this one.
      ``MismatchError``: the two are not of one kind, or what comes is not what is expected. ``PeerMissingError``: the
      other member did not come in time. Nothing has moved after any of these.

    Attributes:
        rank: Rank in the gang.
        target: Its gRPC target.
    """

    def __init__(self, gang: AsyncGang, rank: int) -> None:
        """Made by the gang."""
        self._gang = gang
        self.rank = rank
        self.target = gang.targets[rank]

    def __repr__(self) -> str:
        """Gives number and target."""
        return f"{type(self).__name__}({self.rank}, {self.target!r})"

    @property
    def transfers(self) -> Transfers:
        """How large tensors came and went so far: by shared memory, or not and why."""
        shared = self._gang._channels.shared
        return Transfers() if shared is None else shared.transfers(self.rank)

    @property
    def _scope(self) -> ops.Scope:
        return self._gang._scope(self.rank)

    async def _run(self, call: Call[T]) -> T:
        return await self._gang._channels.run(call)

    async def put(self, value: TensorLike, *, device: str = "", timeout: float | None = None) -> Ref:
        """Brings a tensor to the rank.

        Args:
            value: A numpy array or torch tensor with any strides, a ``Tensor``, or numbers and nested lists.
            device: "cpu", "cuda:0". Empty: the rank's own.
            timeout: Seconds for the whole transfer. None: the gang's default.

        Returns:
            A ref of the current session.
        """
        return await self._run(ops.put(self._scope, value, device=device, timeout=timeout))

    @overload
    async def get(
        self, ref: Ref, *, to: Literal["numpy"] = "numpy", timeout: float | None = None
    ) -> Array: ...
    @overload
    async def get(self, ref: Ref, *, to: Literal["torch"], timeout: float | None = None) -> torch.Tensor: ...
    @overload
    async def get(self, ref: Ref, *, to: Literal["tensor"], timeout: float | None = None) -> Tensor: ...

    async def get(
        self, ref: Ref, *, to: Form = "numpy", timeout: float | None = None
    ) -> npt.NDArray[Any] | Tensor | torch.Tensor:
        """Fetches a tensor.

        Args:
            ref: A ref of this rank.
            to: "numpy": a numpy array, or a ``Tensor`` where numpy lacks the dtype. "torch": a torch tensor
                on the CPU. "tensor": a ``Tensor``.
            timeout: Seconds for the whole transfer. None: the gang's default.
        """
        fetched: npt.NDArray[Any] | Tensor = await self._run(
            ops.get(self._scope, ref, to=to, timeout=timeout)
        )
        return fetched

    async def create(
        self, dtype: object, shape: Iterable[int] | int, *, init: Init | None = None, device: str = ""
    ) -> Ref:
        """Makes a tensor on the rank; nothing but its description travels.

        Args:
            dtype: Name ("bfloat16"), torch dtype or numpy dtype.
            shape: Sizes, outermost first.
            init: `zeros` (if None), `full`, `arange`, `uniform` or `normal` of this package.
            device: "cpu", "cuda:0". Empty: the rank's own.
        """
        return await self._run(ops.create(self._scope, dtype, shape, init=init, device=device))

    async def describe(self, ref: Ref) -> Ref:
        """Asks the rank for a ref's dtype, shape and device as they are now."""
        return await self._run(ops.describe(self._scope, ref))

    async def summarize(self, ref: Ref, *, timeout: float | None = None) -> Summary:
        """Says what a tensor's elements are like: norm, extremes, mean, NaNs, a hash. It is computed on the rank.

        Of a tensor that an operation writes meanwhile, it may see some new elements and some old ones.

        Args:
            ref: A ref of this rank.
            timeout: Longest time until the answer, in seconds; a gigabyte takes seconds. None: the gang's default.
        """
        return await self._run(ops.summarize(self._scope, ref, timeout=timeout))

    async def list_refs(self, session_id: str | None = None) -> list[Ref]:
        """Lists the refs of a session, in the order in which they were made.

        Args:
            session_id: A session that the rank has, as its status names it; empty: the shared one. None: the
                current one.

        Raises:
            UnknownSessionError: The rank has no such session.
        """
        return await self._more_refs("", session_id)

    async def release(self, refs: Ref | Iterable[Ref]) -> int:
        """Frees refs of one session, all or none, and gives their number."""
        return await self._run(ops.release(self._scope, refs))

    async def new_group(self, name: str, ranks: Iterable[int], **options: Unpack[CallOptions]) -> Group:
        """Makes a group; called on every member of the group in `options` ("world" if not given)."""
        return await self._run(ops.new_group(self._scope, name, ranks, **options))

    async def destroy_group(self, group: str | Group, **options: Unpack[MemberOptions]) -> Group:
        """Ends a group; called on every member of it."""
        return await self._run(ops.destroy_group(self._scope, group, **options))

    async def groups(self) -> list[Group]:
        """Describes every group that this rank knows, by name. Those of which it is no member may have ended."""
        return await self._run(ops.groups(self._scope))

    async def status(self) -> RankStatus:
        """Describes this rank; answers whatever the gang is doing."""
        return await self._run(ops.status(self._scope))

    async def pending(self) -> RankPending:
        """Lists what this rank has accepted and not answered yet, and for whom the groups that it leads wait."""
        return await self._run(ops.pending(self._scope))

    async def record(
        self, *, limit: int = 0, group: str | Group = "", caller: str = ""
    ) -> list[RecordedOperation]:
        """Gives this rank's record: its last operations, in the order in which they ended, then those under way.

        It answers whatever the gang is doing, as long as the rank's process runs.

        Args:
            limit: At most so many, the last ones; 0: all that it keeps, 10,000 unless it was started otherwise.
            group: Only those of this group, or of the one of this name; empty: of all.
            caller: "controller": only operations; "script": only calls of the user's own code; empty: both.
        """
        return await self._run(
            ops.record(self._scope, limit=limit, group=ops.group_name(group), caller=caller)
        )

    async def watch_record(
        self,
        *,
        group: str | Group = "",
        after: Position | int | None = None,
        last: int = 0,
        interval: float = 0.25,
        timeout: float | None = None,
        caller: str = "",
    ) -> AsyncRecordWatch:
        """Watches how this rank's record grows, in place of asking for it again and again.

        Args:
            group: Only operations of this group, or of the one of this name; empty: of all.
            after: The operations that have ended after so many, as far as the rank has kept them; 0: all that it has.
                With a ``Position``, another process in the rank's place begins with all that it has. None: what ends
                from now on, and the `last` before.
            last: Without `after`: so many that have ended last come first.
            interval: Seconds between two growths, 0.05 to 10.
            timeout: Longest time until the rank answers first, in seconds. None: the gang's default. Watching itself
                goes on for as long as it is wanted.
            caller: As of ``record``.

        Returns:
            An iterator, which raises what ends the watch (``UnavailableError``: the rank is gone), and ends when the
            rank stops in good order.
        """
        start = Position(after) if isinstance(after, int) else after
        call = ops.watch_record(
            self._scope,
            group=ops.group_name(group),
            after=start,
            last=last,
            interval=interval,
            timeout=timeout,
            caller=caller,
        )
        return await AsyncRecordWatch(self._gang._channels, call)._begin()

    async def stacks(self) -> list[ThreadStack]:
        """Gives the stacks of the threads of this rank's process that run Python, the main one first."""
        return await self._run(ops.stacks(self._scope))

    async def metrics(self) -> list[MetricFamily]:
        """Asks for what the rank has counted, if it was started with ``--metrics``, and what it holds."""
        return await self._run(ops.metrics(self._scope))

    async def default_device(self) -> str:
        """Asks where the rank makes tensors of which nothing else is said, as optimus-dl's ``default_device``.

        Returns:
            "cpu", "cuda:0".
        """
        return (await self.status()).device

    async def fs_local_rank(self) -> int:
        """Asks for the rank among those that share its file system, as OLMo-core's ``get_fs_local_rank``.

        The one of 0 downloads for the others.
        """
        return (await self.status()).fs_local_rank

    async def open_session(self, session_id: str, *, lease: float | None = None) -> str:
        """Begins a session here, unless it is open already, and gives its id.

        Args:
            session_id: Its id. Empty: the rank chooses one.
            lease: Longest time without a call that names it, in seconds; then the rank closes it. None or 0: it
                lives until it is closed.
        """
        return await self._run(ops.open_session(self._scope, session_id, lease=lease))

    async def renew_session(self, session_id: str, *, timeout: float | None = None) -> float:
        """Keeps a session alive for another lease, and gives the lease in seconds; 0: it has none."""
        return await self._run(ops.renew_session(self._scope, session_id, timeout=timeout))

    async def close_session(self, session_id: str) -> int:
        """Ends a session here, and gives the number of refs that it freed."""
        return await self._run(ops.close_session(self._scope, session_id))

    async def submit(self, operation: str, *args: Any, **options: Any) -> str:
        """Begins this rank's part of a collective, and returns as soon as the rank has it.

        Args:
            operation: Name of the collective, as of this class's method: "all_reduce".
            *args: What the method takes.
            **options: What the method takes; `operation_id` is needed, and is given back.

        Raises:
            InvalidArgumentError: There is no such collective, or the id is missing.
        """
        return await self._run(ops.submit(self._scope, operation, *args, **options))

    async def poll(self, operation_id: str) -> OperationStatus:
        """Tells how far an operation is on this rank.

        Raises:
            UnknownOperationError: No operation of this id is known here.
        """
        return await self._run(ops.poll(self._scope, operation_id))

    async def await_operation(self, operation_id: str, *, timeout: float | None = None) -> Any:
        """Waits for an operation's outcome on this rank, whoever began it, and gives or raises it.

        Args:
            operation_id: Its id.
            timeout: Longest time to wait, in seconds. None: the gang's default.

        Raises:
            UnknownOperationError: No operation of this id is known here.
            DeadlineExceededError: It is not done yet, and goes on.
        """
        return await self._run(ops.await_operation(self._scope, operation_id, timeout=timeout))

    async def cancel(self, operation_id: str) -> bool:
        """Withdraws an operation from this rank; False: it was admitted or done already.

        Raises:
            UnknownOperationError: No operation of this id is known here.
        """
        return await self._run(ops.cancel(self._scope, operation_id))

    def start(self, operation: str, *args: Any, **options: Any) -> AsyncPending[Any]:
        """Begins any operation and returns at once.

        Args:
            operation: Name of the operation, as of this class's method: "all_reduce".
            *args: What the method takes.
            **options: What the method takes.

        Returns:
            The call in flight, with `result`, `exception`, `done` and `cancel`.

        Raises:
            InvalidArgumentError: There is no such operation.
        """
        return self._gang._channels.start(ops.find_operation(operation)(self._scope, *args, **options))

    async def call(self, function: str, /, *args: object, **kwargs: object) -> Any:
        """Calls a function of a module that was loaded into the ranks, on this rank alone. See ``AsyncGang.call``."""
        return await self.function(function)(*args, **kwargs)

    def function(self, name: str, **options: Unpack[MemberOptions]) -> AsyncRankFunction:
        """Gives a function of this rank, to be called with options.

        Args:
            name: Its name.
            **options: ``MemberOptions``: of each call of it.
        """
        return AsyncRankFunction(self, name, options)

    async def functions(self) -> list[FunctionDescription]:
        """Lists the functions that this rank offers, by name."""
        return await self._run(ops.functions(self._scope))

    async def kill(self, pid: int | None = None) -> int:
        """Kills the rank's process: for one in which a function never returns. Its agent replaces it.

        Args:
            pid: The process that is meant, so that no replacement is killed by mistake. None: whichever it is.

        Returns:
            Its process id.

        Raises:
            InvalidArgumentError: The process is another, or has other ranks, too. Nothing happened.
        """
        return await self._run(ops.kill(self._scope, pid))

    async def _more_refs(self, token: str, session_id: str | None = None) -> list[Ref]:
        refs: list[Ref] = []
        scope = self._gang._scope(self.rank, session_id)
        while True:
            page = await self._run(ops.list_refs(scope, page_token=token))
            refs.extend(page.refs)
            token = page.next_page_token
            if not token:
                return refs

    # --- of CollectiveService: written by scripts/methods.py from the proto, but for what is elsewhere by hand

    async def barrier(self, **options: Unpack[CallOptions]) -> None:
        """Waits for all members. See ``AsyncGang.barrier``."""
        await self._run(ops.OPERATIONS["barrier"](self._scope, **options))

    async def broadcast(
        self, ref: Ref, *, src_rank_in_group: int = 0, in_place: bool = False, **options: Unpack[CallOptions]
    ) -> Ref:
        """Sends one member's tensor to all. See ``AsyncGang.broadcast``."""
        result: Ref = await self._run(
            ops.OPERATIONS["broadcast"](
                self._scope, ref, src_rank_in_group=src_rank_in_group, in_place=in_place, **options
            )
        )
        return result

    @overload
    async def gather(
        self,
        ref: Ref,
        *,
        dst_rank_in_group: int = 0,
        dim: int | None = None,
        sizes: Sequence[int] | None = None,
        layout: Literal["concatenated", "stacked"] = "concatenated",
        ragged: bool = False,
        **options: Unpack[CallOptions],
    ) -> Ref | None: ...
    @overload
    async def gather(
        self,
        ref: Ref,
        *,
        dst_rank_in_group: int = 0,
        dim: int | None = None,
        sizes: Sequence[int] | None = None,
        layout: Literal["list"],
        ragged: bool = False,
        **options: Unpack[CallOptions],
    ) -> list[Ref] | None: ...
    async def gather(
        self,
        ref: Ref,
        *,
        dst_rank_in_group: int = 0,
        dim: int | None = None,
        sizes: Sequence[int] | None = None,
        layout: GatherLayout = "concatenated",
        ragged: bool = False,
        **options: Unpack[CallOptions],
    ) -> Any:
        """Concatenates all members' tensors at one of them. See ``AsyncGang.gather``."""
        return await self._run(
            ops.OPERATIONS["gather"](
                self._scope,
                ref,
                dst_rank_in_group=dst_rank_in_group,
                dim=dim,
                sizes=sizes,
                layout=layout,
                ragged=ragged,
                **options,
            )
        )

    async def all_reduce(
        self, ref: Ref, *, op: ReduceOp = "sum", in_place: bool = False, **options: Unpack[CallOptions]
    ) -> Ref:
        """Reduces all members' tensors, element by element. See ``AsyncGang.all_reduce``."""
        result: Ref = await self._run(
            ops.OPERATIONS["all_reduce"](self._scope, ref, op=op, in_place=in_place, **options)
        )
        return result

    @overload
    async def all_gather(
        self,
        ref: Ref,
        *,
        dim: int | None = None,
        sizes: Sequence[int] | None = None,
        layout: Literal["concatenated", "stacked"] = "concatenated",
        ragged: bool = False,
        **options: Unpack[CallOptions],
    ) -> Ref: ...
    @overload
    async def all_gather(
        self,
        ref: Ref,
        *,
        dim: int | None = None,
        sizes: Sequence[int] | None = None,
        layout: Literal["list"],
        ragged: bool = False,
        **options: Unpack[CallOptions],
    ) -> list[Ref]: ...
    async def all_gather(
        self,
        ref: Ref,
        *,
        dim: int | None = None,
        sizes: Sequence[int] | None = None,
        layout: GatherLayout = "concatenated",
        ragged: bool = False,
        **options: Unpack[CallOptions],
    ) -> Any:
        """Concatenates all members' tensors at all of them. See ``AsyncGang.all_gather``."""
        return await self._run(
            ops.OPERATIONS["all_gather"](
                self._scope, ref, dim=dim, sizes=sizes, layout=layout, ragged=ragged, **options
            )
        )

    async def reduce(
        self, ref: Ref, *, op: ReduceOp = "sum", dst_rank_in_group: int = 0, **options: Unpack[CallOptions]
    ) -> Ref | None:
        """Reduces all members' tensors at one of them, element by element. See ``AsyncGang.reduce``."""
        result: Ref | None = await self._run(
            ops.OPERATIONS["reduce"](self._scope, ref, op=op, dst_rank_in_group=dst_rank_in_group, **options)
        )
        return result

    async def scatter(
        self,
        ref: Ref,
        *,
        src_rank_in_group: int = 0,
        dim: int = 0,
        sizes: Sequence[int] | None = None,
        **options: Unpack[CallOptions],
    ) -> Ref:
        """Divides one member's tensor among all. See ``AsyncGang.scatter``."""
        result: Ref = await self._run(
            ops.OPERATIONS["scatter"](
                self._scope, ref, src_rank_in_group=src_rank_in_group, dim=dim, sizes=sizes, **options
            )
        )
        return result

    async def reduce_scatter(
        self,
        ref: Ref,
        *,
        op: ReduceOp = "sum",
        dim: int = -1,
        sizes: Sequence[int] | None = None,
        **options: Unpack[CallOptions],
    ) -> Ref:
        """Reduces all members' tensors, element by element, and divides the result among them.

        See ``AsyncGang.reduce_scatter``.
        """
        result: Ref = await self._run(
            ops.OPERATIONS["reduce_scatter"](self._scope, ref, op=op, dim=dim, sizes=sizes, **options)
        )
        return result

    async def all_to_all(
        self,
        ref: Ref,
        *,
        dim: int = 0,
        input_sizes: Sequence[int] | None = None,
        output_sizes: Sequence[int] | None = None,
        **options: Unpack[CallOptions],
    ) -> Ref:
        """Gives every member its parts of all members' tensors, concatenated in group order.

        As ``torch.distributed.all_to_all_single``, but along any dimension: what each member gets is what it is
        sent first by the first member, then by the second, and so on.

        Args:
            ref: A ref of this rank, one dimension or more; equal dtype on all members, and equal shape but for the
                sizes.
            dim: Dimension along which to divide and to concatenate; negative counts from the last. 0: the first.
            input_sizes: Size along `dim` of what this rank sends to each member, by rank in group, each 0 or more;
                they add up to the tensor's. None: equal parts, of tensors that are all alike.
            output_sizes: Size along `dim` of what this rank gets from each member, by rank in group, each 0 or
                more: what that member's `input_sizes` say of this rank. None if `input_sizes` is.
            **options: See the class.

        Returns:
            A ref on what this rank got.

        Raises:
            InvalidArgumentError: A member's tensor cannot be divided so.
            MismatchError: The members' dtypes, shapes or dims differ, or one expects another size than the other
                sends: every member gets both sides, and nothing has moved.
        """
        result: Ref = await self._run(
            ops.OPERATIONS["all_to_all"](
                self._scope, ref, dim=dim, input_sizes=input_sizes, output_sizes=output_sizes, **options
            )
        )
        return result

    async def scan(
        self, ref: Ref, *, op: ReduceOp = "sum", exclusive: bool = False, **options: Unpack[CallOptions]
    ) -> Ref:
        """Reduces the tensors of the members so far, element by element. See ``AsyncGang.scan``."""
        result: Ref = await self._run(
            ops.OPERATIONS["scan"](self._scope, ref, op=op, exclusive=exclusive, **options)
        )
        return result

    # --- end of CollectiveService

    # --- of ObjectService: written by scripts/methods.py from the proto, but for what is elsewhere by hand

    async def broadcast_object(
        self, value: object = None, *, src_rank_in_group: int = 0, **options: Unpack[CallOptions]
    ) -> Any:
        """Sends one member's value to all. `value` counts at the source alone. See ``AsyncGang.broadcast_object``."""
        return await self._run(
            ops.OPERATIONS["broadcast_object"](
                self._scope, value, src_rank_in_group=src_rank_in_group, **options
            )
        )

    async def scatter_object(
        self,
        values: Sequence[object] | None = None,
        *,
        src_rank_in_group: int = 0,
        **options: Unpack[CallOptions],
    ) -> Any:
        """Divides one member's values among all.

        `values` count at the source alone. See ``AsyncGang.scatter_object``.
        """
        return await self._run(
            ops.OPERATIONS["scatter_object"](
                self._scope, values, src_rank_in_group=src_rank_in_group, **options
            )
        )

    async def gather_object(
        self, value: object, *, dst_rank_in_group: int = 0, **options: Unpack[CallOptions]
    ) -> list[Any] | None:
        """Collects all members' values at one of them. See ``AsyncGang.gather_object``."""
        result: list[Any] | None = await self._run(
            ops.OPERATIONS["gather_object"](
                self._scope, value, dst_rank_in_group=dst_rank_in_group, **options
            )
        )
        return result

    async def all_gather_object(self, value: object, **options: Unpack[CallOptions]) -> list[Any]:
        """Collects all members' values at all of them. See ``AsyncGang.all_gather_object``."""
        result: list[Any] = await self._run(
            ops.OPERATIONS["all_gather_object"](self._scope, value, **options)
        )
        return result

    async def all_reduce_value(
        self, value: float, *, op: ReduceOp = "sum", **options: Unpack[CallOptions]
    ) -> Any:
        """Reduces all members' numbers. See ``AsyncGang.all_reduce_value``."""
        return await self._run(ops.OPERATIONS["all_reduce_value"](self._scope, value, op=op, **options))

    async def broadcast_tensor_dict(
        self,
        tensors: Mapping[Any, Any] | None = None,
        *,
        src_rank_in_group: int = 0,
        **options: Unpack[CallOptions],
    ) -> dict[Any, Any]:
        """Sends one member's map of tensors to all.

        `tensors` count at the source alone. See ``AsyncGang.broadcast_tensor_dict``.
        """
        result: dict[Any, Any] = await self._run(
            ops.OPERATIONS["broadcast_tensor_dict"](
                self._scope, tensors, src_rank_in_group=src_rank_in_group, **options
            )
        )
        return result

    # --- end of ObjectService

    async def broadcast_object_list(
        self,
        values: Sequence[object] | None = None,
        *,
        src_rank_in_group: int = 0,
        **options: Unpack[CallOptions],
    ) -> list[Any]:
        """Gives the source's list; `values` count at the source alone. See ``AsyncGang.broadcast_object_list``.

        Raises:
            InvalidArgumentError: `values` are given and no list.
        """
        given = None if values is None else ops.checked_list("broadcast_object_list", values)
        call = ops.OPERATIONS["broadcast_object"](
            self._scope, given, src_rank_in_group=src_rank_in_group, **options
        )
        listed: list[Any] = await self._run(call)
        return listed

    # --- of PointToPointService: written by scripts/methods.py from the proto, but for what is elsewhere by hand

    async def send(
        self, ref: Ref, *, dst_rank_in_group: int, tag: int = 0, **options: Unpack[CallOptions]
    ) -> None:
        """Sends a tensor to one member, and returns when it has left this rank.

        Args:
            ref: A ref of this rank.
            dst_rank_in_group: Rank in the group that receives, 0 to the group's size - 1, not this one.
            tag: Separates messages between the same two members, 0 to 2**32 - 1.
            **options: See the class.
        """
        await self._run(
            ops.OPERATIONS["send"](self._scope, ref, dst_rank_in_group=dst_rank_in_group, tag=tag, **options)
        )

    async def isend(
        self, ref: Ref, *, dst_rank_in_group: int, tag: int = 0, **options: Unpack[CallOptions]
    ) -> AsyncWork[None]:
        """Begins `send`, and returns as soon as the rank has it."""
        return await self._begin("send", ref, dst_rank_in_group=dst_rank_in_group, tag=tag, **options)

    async def recv(
        self,
        *,
        src_rank_in_group: int | None = None,
        tag: int = 0,
        expected: Expected | None = None,
        **options: Unpack[CallOptions],
    ) -> tuple[Ref, int]:
        """Receives a tensor from one member, or from any.

        Args:
            src_rank_in_group: Rank in the group that sends, 0 to the group's size - 1, not this one. None: any.
            tag: Tag of the message, 0 to 2**32 - 1.
            expected: A ref of this rank, of the dtype and shape that must come: it takes what comes. Or a pair of
                dtype and shape. None: whatever comes.
            **options: See the class.

        Returns:
            A tuple: a ref on what came (the one expected, if a ref was), and the rank in group that it came from.
        """
        result: tuple[Ref, int] = await self._run(
            ops.OPERATIONS["recv"](
                self._scope, src_rank_in_group=src_rank_in_group, tag=tag, expected=expected, **options
            )
        )
        return result

    async def irecv(
        self,
        *,
        src_rank_in_group: int | None = None,
        tag: int = 0,
        expected: Expected | None = None,
        **options: Unpack[CallOptions],
    ) -> AsyncWork[tuple[Ref, int]]:
        """Begins `recv`, and returns as soon as the rank has it."""
        return await self._begin(
            "recv", src_rank_in_group=src_rank_in_group, tag=tag, expected=expected, **options
        )

    async def send_object(
        self, value: object, *, dst_rank_in_group: int, tag: int = 0, **options: Unpack[CallOptions]
    ) -> None:
        """Sends a value to one member.

        A ref in it travels as the handle that it is.

        Args:
            value: What is sent. Whatever ``to_value`` takes.
            dst_rank_in_group: Rank in the group that receives, 0 to the group's size - 1, not this one.
            tag: Separates messages between the same two members, 0 to 2**32 - 1.
            **options: See the class.
        """
        await self._run(
            ops.OPERATIONS["send_object"](
                self._scope, value, dst_rank_in_group=dst_rank_in_group, tag=tag, **options
            )
        )

    async def isend_object(
        self, value: object, *, dst_rank_in_group: int, tag: int = 0, **options: Unpack[CallOptions]
    ) -> AsyncWork[None]:
        """Begins `send_object`, and returns as soon as the rank has it."""
        return await self._begin(
            "send_object", value, dst_rank_in_group=dst_rank_in_group, tag=tag, **options
        )

    async def recv_object(
        self, *, src_rank_in_group: int | None = None, tag: int = 0, **options: Unpack[CallOptions]
    ) -> tuple[Any, int]:
        """Receives a value from one member, or from any.

        Args:
            src_rank_in_group: Rank in the group that sends, 0 to the group's size - 1, not this one. None: any.
            tag: Tag of the message, 0 to 2**32 - 1.
            **options: See the class.

        Returns:
            A tuple: the value that came, and the rank in group that it came from.
        """
        result: tuple[Any, int] = await self._run(
            ops.OPERATIONS["recv_object"](
                self._scope, src_rank_in_group=src_rank_in_group, tag=tag, **options
            )
        )
        return result

    async def irecv_object(
        self, *, src_rank_in_group: int | None = None, tag: int = 0, **options: Unpack[CallOptions]
    ) -> AsyncWork[tuple[Any, int]]:
        """Begins `recv_object`, and returns as soon as the rank has it."""
        return await self._begin("recv_object", src_rank_in_group=src_rank_in_group, tag=tag, **options)

    async def send_tensor_dict(
        self,
        tensors: Mapping[Any, Any],
        *,
        dst_rank_in_group: int,
        tag: int = 0,
        **options: Unpack[CallOptions],
    ) -> None:
        """Sends a map of tensors to one member.

        Args:
            tensors: A map of values, maps in it included, whose refs are tensors on this rank.
            dst_rank_in_group: Rank in the group that receives, 0 to the group's size - 1, not this one.
            tag: Separates messages between the same two members, 0 to 2**32 - 1.
            **options: See the class.
        """
        await self._run(
            ops.OPERATIONS["send_tensor_dict"](
                self._scope, tensors, dst_rank_in_group=dst_rank_in_group, tag=tag, **options
            )
        )

    async def isend_tensor_dict(
        self,
        tensors: Mapping[Any, Any],
        *,
        dst_rank_in_group: int,
        tag: int = 0,
        **options: Unpack[CallOptions],
    ) -> AsyncWork[None]:
        """Begins `send_tensor_dict`, and returns as soon as the rank has it."""
        return await self._begin(
            "send_tensor_dict", tensors, dst_rank_in_group=dst_rank_in_group, tag=tag, **options
        )

    async def recv_tensor_dict(
        self, *, src_rank_in_group: int | None = None, tag: int = 0, **options: Unpack[CallOptions]
    ) -> tuple[dict[Any, Any], int]:
        """Receives a map of tensors from one member, or from any.

        Args:
            src_rank_in_group: Rank in the group that sends, 0 to the group's size - 1, not this one. None: any.
            tag: Tag of the message, 0 to 2**32 - 1.
            **options: See the class.

        Returns:
            A tuple: the map that came, with refs on new tensors of this rank, and the rank in group that it came
            from.
        """
        result: tuple[dict[Any, Any], int] = await self._run(
            ops.OPERATIONS["recv_tensor_dict"](
                self._scope, src_rank_in_group=src_rank_in_group, tag=tag, **options
            )
        )
        return result

    async def irecv_tensor_dict(
        self, *, src_rank_in_group: int | None = None, tag: int = 0, **options: Unpack[CallOptions]
    ) -> AsyncWork[tuple[dict[Any, Any], int]]:
        """Begins `recv_tensor_dict`, and returns as soon as the rank has it."""
        return await self._begin("recv_tensor_dict", src_rank_in_group=src_rank_in_group, tag=tag, **options)

    # --- end of PointToPointService

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
        return AsyncWork(channels, call.operation_id, self._scope, timeout)

    # --- several collectives as one operation ------------------------------------------------------------

    async def coalesce(self, collectives: Sequence[Collective], **options: Unpack[CallOptions]) -> list[Any]:
        """Does this member's part of several collectives, and gives what each gives here. See ``AsyncGang.coalesce``.

        Args:
            collectives: For each the name of its method, this rank's ref, and its options.
            **options: Of the one call.
        """
        return await self._run(ops.coalesce(self._scope, collectives, **options))

    # --- programs ----------------------------------------------------------------------------------------

    async def run(
        self, program: Program, *, keep: Sequence[Named] = (), **options: Unpack[CallOptions]
    ) -> list[Any]:
        """Runs this member's part of a program; the other members run theirs. See ``AsyncGang.run``.

        Args:
            program: The program, whose steps take refs of this rank. All members' steps are the same ones.
            keep: What is kept.
            **options: Of the one call.

        Returns:
            For each name in `keep`, in order, what the collective gives here: a ref, a list of refs, or None.
        """
        return await self._run(ops.run_program(self._scope, program, keep=keep, **options))

    # --- graphs ------------------------------------------------------------------------------------------

    @contextlib.asynccontextmanager
    async def graph_capture(
        self, name: str | None = None, *, group: str | Group = "world"
    ) -> AsyncIterator[Graph]:
        """Records this rank's part of what ``AsyncGang.graph_capture`` records."""
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

    # --- message queues ----------------------------------------------------------------------------------

    async def new_queue(
        self,
        name: str,
        *,
        writer_rank_in_group: int = 0,
        reader_ranks_in_group: Iterable[int] | None = None,
        max_chunk_bytes: int | None = None,
        max_chunks: int | None = None,
        **options: Unpack[CallOptions],
    ) -> QueueDescription:
        """Makes a queue; called on every member of the group. See ``AsyncGang.new_queue``."""
        call = ops.new_queue(
            self._scope,
            name,
            writer_rank_in_group=writer_rank_in_group,
            reader_ranks_in_group=reader_ranks_in_group,
            max_chunk_bytes=max_chunk_bytes,
            max_chunks=max_chunks,
            **options,
        )
        return await self._run(call)

    async def enqueue(self, queue: str | NamedQueue, value: object, **options: Unpack[CallOptions]) -> None:
        """Writes a value, as the queue's writer. See ``AsyncQueue.enqueue``.

        Args:
            queue: The queue, or its name in the group of `options`.
            value: Whatever ``to_value`` takes.
            **options: See the class.
        """
        return await self._run(ops.enqueue(self._scope, queue, value, **options))

    async def dequeue(self, queue: str | NamedQueue, **options: Unpack[CallOptions]) -> Any:
        """Reads the next value, as one of the queue's readers. See ``AsyncQueue.dequeue``.

        Args:
            queue: The queue, or its name in the group of `options`.
            **options: See the class.
        """
        return await self._run(ops.dequeue(self._scope, queue, **options))

    async def shut_down_queue(
        self, queue: str | NamedQueue, **options: Unpack[CallOptions]
    ) -> QueueDescription:
        """Ends this rank's end of a queue, and gives it as it was. See ``AsyncQueue.shut_down``.

        Args:
            queue: The queue, or its name in the group of `options`.
            **options: See the class.
        """
        return await self._run(ops.shut_down_queue(self._scope, queue, **options))

    async def queues(self) -> list[QueueDescription]:
        """Describes every queue that this rank has an end of, by group and name."""
        return await self._run(ops.queues(self._scope))

    # --- events ------------------------------------------------------------------------------------------

    async def events(
        self,
        kinds: Iterable[EventKind] = (),
        *,
        after: Position | int | None = None,
        timeout: float | None = None,
    ) -> AsyncEvents:
        """Watches what happens on this rank.

        Args:
            kinds: Which kinds of events: "formed", "over", "mismatch", "peer_missing", "straggler". None named: all.
            after: The events after the one of this number, as far as the rank has kept them; 0: all that it has.
                With a ``Position``, another process in the rank's place begins with all that it has. None: what
                happens from now on.
            timeout: Longest time until the rank says that it is watched, in seconds. None: the gang's default.
                Watching itself goes on for as long as it is wanted.

        Returns:
            An iterator, which raises what ends the watch (``UnavailableError``: the rank is gone), and ends when
            the rank stops in good order.
        """
        starts = starts_at(after, [self.rank])
        call = watch(self._scope, kinds, starts[self.rank], timeout)
        return await AsyncEvents(self._gang._channels, [call], starts, alone=True)._begin()


class AsyncRankFunction:
    """A function of a module that was loaded into a rank, for it alone: ``gang[2].function("step", timeout=600)``.

    Attributes:
        name: Its name.
    """

    def __init__(self, rank: AsyncRank, name: str, options: MemberOptions) -> None:
        """Made by ``AsyncRank.function``."""
        self.name = name
        self._rank = rank
        self._options: dict[str, Any] = {**options, "function": name, "alone": True}

    async def __call__(self, *args: object, **kwargs: object) -> Any:
        """Calls it, and gives what it returns: see ``AsyncGang.call``."""
        return await self._rank._run(self._call(args, kwargs))

    def start(self, *args: object, **kwargs: object) -> AsyncFunctionCall:
        """Calls it likewise, and returns at once: what it gives has its reports, and its result, a list of one."""
        rank = self._rank
        return AsyncFunctionCall(
            rank._gang._channels,
            self.name,
            [self._call(args, kwargs)],
            lambda _, call_id: ops.reports(rank._scope, call_id),
        )

    def _call(self, args: tuple[object, ...], kwargs: dict[str, object]) -> Call[Any]:
        given = Arguments(args, kwargs)
        return ops.call_function(self._rank._scope, given, **with_id(self._options))
