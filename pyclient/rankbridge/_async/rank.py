"""One rank of a gang, for asyncio."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Literal, Unpack, overload

import numpy.typing as npt

from rankbridge._async.coalesced import AsyncRankCoalesced
from rankbridge._async.events import AsyncRankEvents
from rankbridge._async.gathers import AsyncRankGathers
from rankbridge._async.graphs import AsyncRankGraphs
from rankbridge._async.objects import AsyncRankObjects
from rankbridge._async.point_to_point import AsyncRankPointToPoint
from rankbridge._async.program_runs import AsyncRankRuns
from rankbridge._async.queue import AsyncRankQueues
from rankbridge._async.rank_collectives import AsyncRankCollectives
from rankbridge._plan import operations as ops
from rankbridge._plan.inits import Init
from rankbridge._plan.operations import CallOptions, Form, MemberOptions
from rankbridge._plan.ref import Ref
from rankbridge._plan.status import Group, OperationStatus, RankStatus
from rankbridge._plan.tensor import Array, Tensor, TensorLike
from rankbridge._transport.aio.channels import AsyncPending

if TYPE_CHECKING:
    import torch

__all__ = ["AsyncRank"]


class AsyncRank(
    AsyncRankCollectives,
    AsyncRankGathers,
    AsyncRankObjects,
    AsyncRankPointToPoint,
    AsyncRankCoalesced,
    AsyncRankRuns,
    AsyncRankGraphs,
    AsyncRankQueues,
    AsyncRankEvents,
):
    """One rank of a gang, as ``Rank``: the same methods and arguments, to be awaited.

    `start` is not: it begins the call and returns at once. `graph_capture` is entered with ``async with``.

    Attributes:
        rank: Rank in the gang.
        target: Its gRPC target.
    """

    async def put(self, value: TensorLike, *, device: str = "", timeout: float | None = None) -> Ref:
        """As ``Rank.put``."""
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
        """As ``Rank.get``."""
        fetched: npt.NDArray[Any] | Tensor = await self._run(
            ops.get(self._scope, ref, to=to, timeout=timeout)
        )
        return fetched

    async def create(
        self, dtype: object, shape: Iterable[int] | int, *, init: Init | None = None, device: str = ""
    ) -> Ref:
        """As ``Rank.create``."""
        return await self._run(ops.create(self._scope, dtype, shape, init=init, device=device))

    async def describe(self, ref: Ref) -> Ref:
        """As ``Rank.describe``."""
        return await self._run(ops.describe(self._scope, ref))

    async def list_refs(self) -> list[Ref]:
        """As ``Rank.list_refs``."""
        return await self._more_refs("")

    async def release(self, refs: Ref | Iterable[Ref]) -> int:
        """As ``Rank.release``."""
        return await self._run(ops.release(self._scope, refs))

    async def new_group(self, name: str, ranks: Iterable[int], **options: Unpack[CallOptions]) -> Group:
        """As ``Rank.new_group``."""
        return await self._run(ops.new_group(self._scope, name, ranks, **options))

    async def destroy_group(self, group: str | Group, **options: Unpack[MemberOptions]) -> Group:
        """As ``Rank.destroy_group``."""
        return await self._run(ops.destroy_group(self._scope, group, **options))

    async def groups(self) -> list[Group]:
        """As ``Rank.groups``."""
        return await self._run(ops.groups(self._scope))

    async def status(self) -> RankStatus:
        """As ``Rank.status``."""
        return await self._run(ops.status(self._scope))

    async def default_device(self) -> str:
        """As ``Rank.default_device``."""
        return (await self.status()).device

    async def fs_local_rank(self) -> int:
        """As ``Rank.fs_local_rank``."""
        return (await self.status()).fs_local_rank

    async def open_session(self, session_id: str, *, lease: float | None = None) -> str:
        """As ``Rank.open_session``."""
        return await self._run(ops.open_session(self._scope, session_id, lease=lease))

    async def renew_session(self, session_id: str, *, timeout: float | None = None) -> float:
        """As ``Rank.renew_session``."""
        return await self._run(ops.renew_session(self._scope, session_id, timeout=timeout))

    async def close_session(self, session_id: str) -> int:
        """As ``Rank.close_session``."""
        return await self._run(ops.close_session(self._scope, session_id))

    async def submit(self, operation: str, *args: Any, **options: Any) -> str:
        """As ``Rank.submit``."""
        return await self._run(ops.submit(self._scope, operation, *args, **options))

    async def poll(self, operation_id: str) -> OperationStatus:
        """As ``Rank.poll``."""
        return await self._run(ops.poll(self._scope, operation_id))

    async def await_operation(self, operation_id: str, *, timeout: float | None = None) -> Any:
        """As ``Rank.await_operation``."""
        return await self._run(ops.await_operation(self._scope, operation_id, timeout=timeout))

    async def cancel(self, operation_id: str) -> bool:
        """As ``Rank.cancel``."""
        return await self._run(ops.cancel(self._scope, operation_id))

    def start(self, operation: str, *args: Any, **options: Any) -> AsyncPending[Any]:
        """As ``Rank.start``."""
        return self._gang._channels.start(ops.find_operation(operation)(self._scope, *args, **options))

    async def _more_refs(self, token: str) -> list[Ref]:
        refs: list[Ref] = []
        while True:
            page = await self._run(ops.list_refs(self._scope, page_token=token))
            refs.extend(page.refs)
            token = page.next_page_token
            if not token:
                return refs
