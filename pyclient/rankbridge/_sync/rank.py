# Written by scripts/unasync.py from _async/rank.py: change that file, not this one.
"""One rank of a gang, blocking."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Literal, Unpack, overload

import numpy.typing as npt

from rankbridge._plan import operations as ops
from rankbridge._plan.inits import Init
from rankbridge._plan.operations import CallOptions, Form, MemberOptions
from rankbridge._plan.ref import Ref
from rankbridge._plan.status import Group, OperationStatus, RankStatus
from rankbridge._plan.tensor import Array, Tensor, TensorLike
from rankbridge._sync.coalesced import RankCoalesced
from rankbridge._sync.events import RankEvents
from rankbridge._sync.gathers import RankGathers
from rankbridge._sync.graphs import RankGraphs
from rankbridge._sync.objects import RankObjects
from rankbridge._sync.point_to_point import RankPointToPoint
from rankbridge._sync.program_runs import RankRuns
from rankbridge._sync.queue import RankQueues
from rankbridge._sync.rank_collectives import RankCollectives
from rankbridge._transport.threads.pending import Pending

if TYPE_CHECKING:
    import torch

__all__ = ["Rank"]


class Rank(
    RankCollectives,
    RankGathers,
    RankObjects,
    RankPointToPoint,
    RankCoalesced,
    RankRuns,
    RankGraphs,
    RankQueues,
    RankEvents,
):
    """One rank of a gang: ``gang[2]``.

    Every method raises ``RankBridgeError``, as its subclasses tell. A collective is called on every member of
    its group; called here, it waits for the others to be called too. ``**options`` are ``CallOptions``:
    `group`, `timeout` in seconds, `operation_id` (none unless given), `generation`.

    Attributes:
        rank: Rank in the gang.
        target: Its gRPC target.
    """

    def put(self, value: TensorLike, *, device: str = "", timeout: float | None = None) -> Ref:
        """Brings a tensor to the rank.

        Args:
            value: A numpy array or torch tensor with any strides, a ``Tensor``, or numbers and nested lists.
            device: "cpu", "cuda:0". Empty: the rank's own.
            timeout: Seconds for the whole transfer. None: the gang's default.

        Returns:
            A ref of the current session.
        """
        return self._run(ops.put(self._scope, value, device=device, timeout=timeout))

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
        fetched: npt.NDArray[Any] | Tensor = self._run(ops.get(self._scope, ref, to=to, timeout=timeout))
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
        return self._run(ops.create(self._scope, dtype, shape, init=init, device=device))

    def describe(self, ref: Ref) -> Ref:
        """Asks the rank for a ref's dtype, shape and device as they are now."""
        return self._run(ops.describe(self._scope, ref))

    def list_refs(self) -> list[Ref]:
        """Lists the refs of the current session, in the order in which they were made."""
        return self._more_refs("")

    def release(self, refs: Ref | Iterable[Ref]) -> int:
        """Frees refs of one session, all or none, and gives their number."""
        return self._run(ops.release(self._scope, refs))

    def new_group(self, name: str, ranks: Iterable[int], **options: Unpack[CallOptions]) -> Group:
        """Makes a group; called on every member of the group in `options` ("world" if not given)."""
        return self._run(ops.new_group(self._scope, name, ranks, **options))

    def destroy_group(self, group: str | Group, **options: Unpack[MemberOptions]) -> Group:
        """Ends a group; called on every member of it."""
        return self._run(ops.destroy_group(self._scope, group, **options))

    def groups(self) -> list[Group]:
        """Describes every group that this rank knows, by name. Those of which it is no member may have ended."""
        return self._run(ops.groups(self._scope))

    def status(self) -> RankStatus:
        """Describes this rank; answers whatever the gang is doing."""
        return self._run(ops.status(self._scope))

    def default_device(self) -> str:
        """Asks where the rank makes tensors of which nothing else is said, as optimus-dl's ``default_device``.

        Returns:
            "cpu", "cuda:0".
        """
        return (self.status()).device

    def fs_local_rank(self) -> int:
        """Asks for the rank among those that share its file system, as OLMo-core's ``get_fs_local_rank``.

        The one of 0 downloads for the others.
        """
        return (self.status()).fs_local_rank

    def open_session(self, session_id: str, *, lease: float | None = None) -> str:
        """Begins a session here, unless it is open already, and gives its id.

        Args:
            session_id: Its id. Empty: the rank chooses one.
            lease: Longest time without a call that names it, in seconds; then the rank closes it. None or 0: it
                lives until it is closed.
        """
        return self._run(ops.open_session(self._scope, session_id, lease=lease))

    def renew_session(self, session_id: str, *, timeout: float | None = None) -> float:
        """Keeps a session alive for another lease, and gives the lease in seconds; 0: it has none."""
        return self._run(ops.renew_session(self._scope, session_id, timeout=timeout))

    def close_session(self, session_id: str) -> int:
        """Ends a session here, and gives the number of refs that it freed."""
        return self._run(ops.close_session(self._scope, session_id))

    def submit(self, operation: str, *args: Any, **options: Any) -> str:
        """Begins this rank's part of a collective, and returns as soon as the rank has it.

        Args:
            operation: Name of the collective, as of this class's method: "all_reduce".
            *args: What the method takes.
            **options: What the method takes; `operation_id` is needed, and is given back.

        Raises:
            InvalidArgumentError: There is no such collective, or the id is missing.
        """
        return self._run(ops.submit(self._scope, operation, *args, **options))

    def poll(self, operation_id: str) -> OperationStatus:
        """Tells how far an operation is on this rank.

        Raises:
            UnknownOperationError: No operation of this id is known here.
        """
        return self._run(ops.poll(self._scope, operation_id))

    def await_operation(self, operation_id: str, *, timeout: float | None = None) -> Any:
        """Waits for an operation's outcome on this rank, whoever began it, and gives or raises it.

        Args:
            operation_id: Its id.
            timeout: Longest time to wait, in seconds. None: the gang's default.

        Raises:
            UnknownOperationError: No operation of this id is known here.
            DeadlineExceededError: It is not done yet, and goes on.
        """
        return self._run(ops.await_operation(self._scope, operation_id, timeout=timeout))

    def cancel(self, operation_id: str) -> bool:
        """Withdraws an operation from this rank; False: it was admitted or done already.

        Raises:
            UnknownOperationError: No operation of this id is known here.
        """
        return self._run(ops.cancel(self._scope, operation_id))

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

    def _more_refs(self, token: str) -> list[Ref]:
        refs: list[Ref] = []
        while True:
            page = self._run(ops.list_refs(self._scope, page_token=token))
            refs.extend(page.refs)
            token = page.next_page_token
            if not token:
                return refs
