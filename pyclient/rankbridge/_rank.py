"""One rank of a gang, blocking."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Literal, Unpack, overload

import numpy.typing as npt

from rankbridge import _operations as ops
from rankbridge._inits import Init
from rankbridge._operations import CallOptions, Form, MemberOptions, ReduceOp
from rankbridge._ref import Ref
from rankbridge._status import Group, OperationStatus, RankStatus
from rankbridge._sync_channels import Pending
from rankbridge._tensor import Array, Tensor, TensorLike

if TYPE_CHECKING:
    import torch

    from rankbridge._gang import Gang

__all__ = ["Rank"]


class Rank:
    """One rank of a gang: ``gang[2]``.

    Every method raises ``RankBridgeError``, as its subclasses tell. A collective is called on every member of
    its group; called here, it waits for the others to be called too. ``**options`` are ``CallOptions``:
    `group`, `timeout` in seconds, `operation_id` (none unless given), `generation`.

    Attributes:
        rank: Rank in the gang.
        target: Its gRPC target.
    """

    def __init__(self, gang: Gang, rank: int) -> None:
        """Made by the gang."""
        self._gang = gang
        self.rank = rank
        self.target = gang.targets[rank]

    def __repr__(self) -> str:
        """Gives number and target."""
        return f"Rank({self.rank}, {self.target!r})"

    def put(self, value: TensorLike, *, device: str = "", timeout: float | None = None) -> Ref:
        """Brings a tensor to the rank.

        Args:
            value: A numpy array or torch tensor with any strides, a ``Tensor``, or numbers and nested lists.
            device: "cpu", "cuda:0". Empty: the rank's own.
            timeout: Seconds for the whole transfer. None: the gang's default.

        Returns:
            A ref of the current session.
        """
        return self._gang._channels.run(ops.put(self._scope, value, device=device, timeout=timeout))

    @overload
    def get(self, ref: Ref, *, to: Literal["numpy"] = "numpy", timeout: float | None = None) -> Array: ...
    @overload
    def get(self, ref: Ref, *, to: Literal["torch"], timeout: float | None = None) -> torch.Tensor: ...
    @overload
    def get(self, ref: Ref, *, to: Literal["tensor"], timeout: float | None = None) -> Tensor: ...

    def get(
        self, ref: Ref, *, to: Form = "numpy", timeout: float | None = None
    ) -> npt.NDArray[Any] | Tensor | torch.Tensor:
        """Fetches a tensor.

        Args:
            ref: A ref of this rank.
            to: "numpy": a numpy array, or a ``Tensor`` where numpy lacks the dtype. "torch": a torch tensor
                on the CPU. "tensor": a ``Tensor``.
            timeout: Seconds for the whole transfer. None: the gang's default.
        """
        fetched: npt.NDArray[Any] | Tensor = self._gang._channels.run(
            ops.get(self._scope, ref, to=to, timeout=timeout)
        )
        return fetched

    def create(
        self, dtype: object, shape: Iterable[int] | int, *, init: Init | None = None, device: str = ""
    ) -> Ref:
        """Makes a tensor on the rank; nothing but its description travels.

        Args:
            dtype: Name ("bfloat16"), torch dtype or numpy dtype.
            shape: Sizes, outermost first.
            init: `zeros` (if None), `full`, `arange`, `uniform` or `normal` of this package.
            device: "cpu", "cuda:0". Empty: the rank's own.
        """
        return self._gang._channels.run(ops.create(self._scope, dtype, shape, init=init, device=device))

    def describe(self, ref: Ref) -> Ref:
        """Asks the rank for a ref's dtype, shape and device as they are now."""
        return self._gang._channels.run(ops.describe(self._scope, ref))

    def list_refs(self) -> list[Ref]:
        """Lists the refs of the current session, in the order in which they were made."""
        return self._more_refs("")

    def release(self, refs: Ref | Iterable[Ref]) -> int:
        """Frees refs of one session, all or none, and gives their number."""
        return self._gang._channels.run(ops.release(self._scope, refs))

    def barrier(self, **options: Unpack[CallOptions]) -> None:
        """Waits for all members of the group."""
        return self._gang._channels.run(ops.barrier(self._scope, **options))

    def broadcast(
        self, ref: Ref, *, src_rank_in_group: int = 0, in_place: bool = False, **options: Unpack[CallOptions]
    ) -> Ref:
        """Gives every member a tensor equal to the source's; see ``Gang.broadcast``."""
        call = ops.broadcast(
            self._scope, ref, src_rank_in_group=src_rank_in_group, in_place=in_place, **options
        )
        return self._gang._channels.run(call)

    def scatter(
        self, ref: Ref, *, src_rank_in_group: int = 0, dim: int = 0, **options: Unpack[CallOptions]
    ) -> Ref:
        """Divides the source's tensor among the members; see ``Gang.scatter``."""
        call = ops.scatter(self._scope, ref, src_rank_in_group=src_rank_in_group, dim=dim, **options)
        return self._gang._channels.run(call)

    def gather(
        self,
        ref: Ref,
        *,
        dst_rank_in_group: int = 0,
        dim: int = -1,
        sizes: Sequence[int] | None = None,
        **options: Unpack[CallOptions],
    ) -> Ref | None:
        """Concatenates the members' tensors at the destination; see ``Gang.gather``."""
        call = ops.gather(
            self._scope, ref, dst_rank_in_group=dst_rank_in_group, dim=dim, sizes=sizes, **options
        )
        return self._gang._channels.run(call)

    def reduce(
        self,
        ref: Ref,
        *,
        op: ReduceOp = "sum",
        dst_rank_in_group: int = 0,
        **options: Unpack[CallOptions],
    ) -> Ref | None:
        """Reduces the members' tensors at the destination; see ``Gang.reduce``."""
        call = ops.reduce(self._scope, ref, op=op, dst_rank_in_group=dst_rank_in_group, **options)
        return self._gang._channels.run(call)

    def all_reduce(
        self, ref: Ref, *, op: ReduceOp = "sum", in_place: bool = False, **options: Unpack[CallOptions]
    ) -> Ref:
        """Reduces the members' tensors, element by element; see ``Gang.all_reduce``."""
        return self._gang._channels.run(ops.all_reduce(self._scope, ref, op=op, in_place=in_place, **options))

    def reduce_scatter(
        self,
        ref: Ref,
        *,
        op: ReduceOp = "sum",
        dim: int = -1,
        sizes: Sequence[int] | None = None,
        **options: Unpack[CallOptions],
    ) -> Ref:
        """Divides the reduction of the members' tensors among them; see ``Gang.reduce_scatter``."""
        call = ops.reduce_scatter(self._scope, ref, op=op, dim=dim, sizes=sizes, **options)
        return self._gang._channels.run(call)

    def all_gather(
        self, ref: Ref, *, dim: int = -1, sizes: Sequence[int] | None = None, **options: Unpack[CallOptions]
    ) -> Ref:
        """Concatenates the members' tensors at all of them; see ``Gang.all_gather``."""
        return self._gang._channels.run(ops.all_gather(self._scope, ref, dim=dim, sizes=sizes, **options))

    def all_to_all(
        self,
        ref: Ref,
        *,
        dim: int = 0,
        input_sizes: Sequence[int] | None = None,
        output_sizes: Sequence[int] | None = None,
        **options: Unpack[CallOptions],
    ) -> Ref:
        """Sends every member its part of every member's tensor; see ``Gang.all_to_all``.

        Args:
            ref: This member's tensor.
            dim: Dimension along which to divide and to concatenate; negative counts from the last.
            input_sizes: Size along `dim` of what goes to each member, by rank in group; they add up to the tensor's.
                None, as `output_sizes` must be then: equal parts.
            output_sizes: Size along `dim` of what comes from each member, by rank in group.
            **options: See the class.

        Raises:
            InvalidArgumentError: The tensor cannot be divided so, or one of the lists is missing.
            MismatchError: A member expects something else than another one sends. All members are told which, and
                nothing has moved.
        """
        call = ops.all_to_all(
            self._scope, ref, dim=dim, input_sizes=input_sizes, output_sizes=output_sizes, **options
        )
        return self._gang._channels.run(call)

    def new_group(self, name: str, ranks: Iterable[int], **options: Unpack[CallOptions]) -> Group:
        """Makes a group; called on every member of the group in `options` ("world" if not given)."""
        return self._gang._channels.run(ops.new_group(self._scope, name, ranks, **options))

    def destroy_group(self, group: str | Group, **options: Unpack[MemberOptions]) -> Group:
        """Ends a group; called on every member of it."""
        return self._gang._channels.run(ops.destroy_group(self._scope, group, **options))

    def groups(self) -> list[Group]:
        """Describes every group of this rank, by name."""
        return self._gang._channels.run(ops.groups(self._scope))

    def status(self) -> RankStatus:
        """Describes this rank; answers whatever the gang is doing."""
        return self._gang._channels.run(ops.status(self._scope))

    def open_session(self, session_id: str, *, lease: float | None = None) -> str:
        """Begins a session here, unless it is open already, and gives its id.

        Args:
            session_id: Its id. Empty: the rank chooses one.
            lease: Longest time without a call that names it, in seconds; then the rank closes it. None or 0: it
                lives until it is closed.
        """
        return self._gang._channels.run(ops.open_session(self._scope, session_id, lease=lease))

    def renew_session(self, session_id: str, *, timeout: float | None = None) -> float:
        """Keeps a session alive for another lease, and gives the lease in seconds; 0: it has none."""
        return self._gang._channels.run(ops.renew_session(self._scope, session_id, timeout=timeout))

    def close_session(self, session_id: str) -> int:
        """Ends a session here, and gives the number of refs that it freed."""
        return self._gang._channels.run(ops.close_session(self._scope, session_id))

    def submit(self, operation: str, *args: Any, **options: Any) -> str:
        """Begins this rank's part of a collective, and returns as soon as the rank has it.

        Args:
            operation: Name of the collective, as of this class's method: "all_reduce".
            *args: What the method takes.
            **options: What the method takes; `operation_id` is needed, and is given back.

        Raises:
            InvalidArgumentError: There is no such collective, or the id is missing.
        """
        return self._gang._channels.run(ops.submit(self._scope, operation, *args, **options))

    def poll(self, operation_id: str) -> OperationStatus:
        """Tells how far an operation is on this rank.

        Raises:
            UnknownOperationError: No operation of this id is known here.
        """
        return self._gang._channels.run(ops.poll(self._scope, operation_id))

    def await_operation(self, operation_id: str, *, timeout: float | None = None) -> Ref | None:
        """Waits for an operation's outcome on this rank, whoever began it, and gives or raises it.

        Args:
            operation_id: Its id.
            timeout: Longest time to wait, in seconds. None: the gang's default.

        Raises:
            UnknownOperationError: No operation of this id is known here.
            DeadlineExceededError: It is not done yet, and goes on.
        """
        return self._gang._channels.run(ops.await_operation(self._scope, operation_id, timeout=timeout))

    def cancel(self, operation_id: str) -> bool:
        """Withdraws an operation from this rank; False: it was admitted or done already.

        Raises:
            UnknownOperationError: No operation of this id is known here.
        """
        return self._gang._channels.run(ops.cancel(self._scope, operation_id))

    def start(self, operation: str, *args: Any, **options: Any) -> Pending[Any]:
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

    @property
    def _scope(self) -> ops.Scope:
        return self._gang._scope(self.rank)

    def _more_refs(self, token: str) -> list[Ref]:
        refs: list[Ref] = []
        while True:
            page = self._gang._channels.run(ops.list_refs(self._scope, page_token=token))
            refs.extend(page.refs)
            token = page.next_page_token
            if not token:
                return refs
