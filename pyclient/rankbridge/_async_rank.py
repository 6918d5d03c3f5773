"""One rank of a gang, for asyncio."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Literal, Unpack, overload

import numpy.typing as npt

from rankbridge import _operations as ops
from rankbridge._async_channels import AsyncPending
from rankbridge._inits import Init
from rankbridge._operations import CallOptions, Form, MemberOptions, ReduceOp
from rankbridge._ref import Ref
from rankbridge._status import Group, OperationStatus, RankStatus
from rankbridge._tensor import Array, Tensor, TensorLike

if TYPE_CHECKING:
    import torch

    from rankbridge._async_gang import AsyncGang

__all__ = ["AsyncRank"]


class AsyncRank:
    """One rank of a gang, as ``Rank``: the same methods and arguments, to be awaited.

    `start` is not: it begins the call and returns at once.

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
        return f"AsyncRank({self.rank}, {self.target!r})"

    async def put(self, value: TensorLike, *, device: str = "", timeout: float | None = None) -> Ref:
        """As ``Rank.put``."""
        return await self._gang._channels.run(ops.put(self._scope, value, device=device, timeout=timeout))

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
        """As ``Rank.get``."""
        fetched: npt.NDArray[Any] | Tensor = await self._gang._channels.run(
            ops.get(self._scope, ref, to=to, timeout=timeout)
        )
        return fetched

    async def create(
        self, dtype: object, shape: Iterable[int] | int, *, init: Init | None = None, device: str = ""
    ) -> Ref:
        """As ``Rank.create``."""
        return await self._gang._channels.run(ops.create(self._scope, dtype, shape, init=init, device=device))

    async def describe(self, ref: Ref) -> Ref:
        """As ``Rank.describe``."""
        return await self._gang._channels.run(ops.describe(self._scope, ref))

    async def list_refs(self) -> list[Ref]:
        """As ``Rank.list_refs``."""
        return await self._more_refs("")

    async def release(self, refs: Ref | Iterable[Ref]) -> int:
        """As ``Rank.release``."""
        return await self._gang._channels.run(ops.release(self._scope, refs))

    async def barrier(self, **options: Unpack[CallOptions]) -> None:
        """As ``Rank.barrier``."""
        return await self._gang._channels.run(ops.barrier(self._scope, **options))

    async def broadcast(
        self, ref: Ref, *, src_rank_in_group: int = 0, in_place: bool = False, **options: Unpack[CallOptions]
    ) -> Ref:
        """As ``Rank.broadcast``."""
        call = ops.broadcast(
            self._scope, ref, src_rank_in_group=src_rank_in_group, in_place=in_place, **options
        )
        return await self._gang._channels.run(call)

    async def scatter(
        self, ref: Ref, *, src_rank_in_group: int = 0, dim: int = 0, **options: Unpack[CallOptions]
    ) -> Ref:
        """As ``Rank.scatter``."""
        call = ops.scatter(self._scope, ref, src_rank_in_group=src_rank_in_group, dim=dim, **options)
        return await self._gang._channels.run(call)

    async def gather(
        self,
        ref: Ref,
        *,
        dst_rank_in_group: int = 0,
        dim: int = -1,
        sizes: Sequence[int] | None = None,
        **options: Unpack[CallOptions],
    ) -> Ref | None:
        """As ``Rank.gather``."""
        call = ops.gather(
            self._scope, ref, dst_rank_in_group=dst_rank_in_group, dim=dim, sizes=sizes, **options
        )
        return await self._gang._channels.run(call)

    async def reduce(
        self,
        ref: Ref,
        *,
        op: ReduceOp = "sum",
        dst_rank_in_group: int = 0,
        **options: Unpack[CallOptions],
    ) -> Ref | None:
        """As ``Rank.reduce``."""
        call = ops.reduce(self._scope, ref, op=op, dst_rank_in_group=dst_rank_in_group, **options)
        return await self._gang._channels.run(call)

    async def all_reduce(
        self, ref: Ref, *, op: ReduceOp = "sum", in_place: bool = False, **options: Unpack[CallOptions]
    ) -> Ref:
        """As ``Rank.all_reduce``."""
        return await self._gang._channels.run(
            ops.all_reduce(self._scope, ref, op=op, in_place=in_place, **options)
        )

    async def reduce_scatter(
        self,
        ref: Ref,
        *,
        op: ReduceOp = "sum",
        dim: int = -1,
        sizes: Sequence[int] | None = None,
        **options: Unpack[CallOptions],
    ) -> Ref:
        """As ``Rank.reduce_scatter``."""
        call = ops.reduce_scatter(self._scope, ref, op=op, dim=dim, sizes=sizes, **options)
        return await self._gang._channels.run(call)

    async def all_gather(
        self, ref: Ref, *, dim: int = -1, sizes: Sequence[int] | None = None, **options: Unpack[CallOptions]
    ) -> Ref:
        """As ``Rank.all_gather``."""
        return await self._gang._channels.run(
            ops.all_gather(self._scope, ref, dim=dim, sizes=sizes, **options)
        )

    async def all_to_all(
        self,
        ref: Ref,
        *,
        dim: int = 0,
        input_sizes: Sequence[int] | None = None,
        output_sizes: Sequence[int] | None = None,
        **options: Unpack[CallOptions],
    ) -> Ref:
        """As ``Rank.all_to_all``."""
        call = ops.all_to_all(
            self._scope, ref, dim=dim, input_sizes=input_sizes, output_sizes=output_sizes, **options
        )
        return await self._gang._channels.run(call)

    async def new_group(self, name: str, ranks: Iterable[int], **options: Unpack[CallOptions]) -> Group:
        """As ``Rank.new_group``."""
        return await self._gang._channels.run(ops.new_group(self._scope, name, ranks, **options))

    async def destroy_group(self, group: str | Group, **options: Unpack[MemberOptions]) -> Group:
        """As ``Rank.destroy_group``."""
        return await self._gang._channels.run(ops.destroy_group(self._scope, group, **options))

    async def groups(self) -> list[Group]:
        """As ``Rank.groups``."""
        return await self._gang._channels.run(ops.groups(self._scope))

    async def status(self) -> RankStatus:
        """As ``Rank.status``."""
        return await self._gang._channels.run(ops.status(self._scope))

    async def open_session(self, session_id: str, *, lease: float | None = None) -> str:
        """As ``Rank.open_session``."""
        return await self._gang._channels.run(ops.open_session(self._scope, session_id, lease=lease))

    async def renew_session(self, session_id: str, *, timeout: float | None = None) -> float:
        """As ``Rank.renew_session``."""
        return await self._gang._channels.run(ops.renew_session(self._scope, session_id, timeout=timeout))

    async def close_session(self, session_id: str) -> int:
        """As ``Rank.close_session``."""
        return await self._gang._channels.run(ops.close_session(self._scope, session_id))

    async def submit(self, operation: str, *args: Any, **options: Any) -> str:
        """As ``Rank.submit``."""
        return await self._gang._channels.run(ops.submit(self._scope, operation, *args, **options))

    async def poll(self, operation_id: str) -> OperationStatus:
        """As ``Rank.poll``."""
        return await self._gang._channels.run(ops.poll(self._scope, operation_id))

    async def await_operation(self, operation_id: str, *, timeout: float | None = None) -> Ref | None:
        """As ``Rank.await_operation``."""
        return await self._gang._channels.run(ops.await_operation(self._scope, operation_id, timeout=timeout))

    async def cancel(self, operation_id: str) -> bool:
        """As ``Rank.cancel``."""
        return await self._gang._channels.run(ops.cancel(self._scope, operation_id))

    def start(self, operation: str, *args: Any, **options: Any) -> AsyncPending[Any]:
        """As ``Rank.start``."""
        return self._gang._channels.start(ops.find_operation(operation)(self._scope, *args, **options))

    @property
    def _scope(self) -> ops.Scope:
        return self._gang._scope(self.rank)

    async def _more_refs(self, token: str) -> list[Ref]:
        refs: list[Ref] = []
        while True:
            page = await self._gang._channels.run(ops.list_refs(self._scope, page_token=token))
            refs.extend(page.refs)
            token = page.next_page_token
            if not token:
                return refs
