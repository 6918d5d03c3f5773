"""Tensors on the ranks of a gang, for asyncio."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Literal, overload

from rankbridge._async.front import AsyncGangFront
from rankbridge._plan import operations as ops
from rankbridge._plan.groups import Group
from rankbridge._plan.inits import Init
from rankbridge._plan.operations import Form
from rankbridge._plan.ref import Ref
from rankbridge._plan.tensor import Array, Tensor, TensorLike, as_tensor

if TYPE_CHECKING:
    import torch

__all__ = ["AsyncGangRefs"]


class AsyncGangRefs(AsyncGangFront):
    """What a ``AsyncGang`` does with tensors that come, stay on their ranks, and go. One of each member, in group order."""

    async def put(
        self,
        values: Sequence[TensorLike],
        *,
        group: str | Group = "world",
        device: str = "",
        timeout: float | None = None,
    ) -> list[Ref]:
        """Brings one tensor to each rank.

        Args:
            values: One for each member of `group`, in group order: whatever ``AsyncRank.put`` takes.
            group: Whose ranks get them.
            device: "cpu", "cuda:0". Empty: each rank's own.
            timeout: Seconds for the whole transfer. None: the default.
        """
        pairs = self._paired(await self._members(group), values, "put")
        return await self._channels.run_all(
            [ops.put(scope, value, device=device, timeout=timeout) for scope, value in pairs]
        )

    async def put_same(
        self,
        value: TensorLike,
        *,
        group: str | Group = "world",
        device: str = "",
        timeout: float | None = None,
    ) -> list[Ref]:
        """Brings the same tensor to each rank; arguments as of `put`."""
        tensor = as_tensor(value)
        calls = self._on(await self._members(group), ops.put, tensor, device=device, timeout=timeout)
        return await self._channels.run_all(calls)

    @overload
    async def get(
        self, refs: Ref, *, to: Literal["numpy"] = "numpy", timeout: float | None = None
    ) -> Array: ...
    @overload
    async def get(self, refs: Ref, *, to: Literal["torch"], timeout: float | None = None) -> torch.Tensor: ...
    @overload
    async def get(self, refs: Ref, *, to: Literal["tensor"], timeout: float | None = None) -> Tensor: ...
    @overload
    async def get(
        self, refs: Iterable[Ref], *, to: Literal["numpy"] = "numpy", timeout: float | None = None
    ) -> list[Array]: ...
    @overload
    async def get(
        self, refs: Iterable[Ref], *, to: Literal["torch"], timeout: float | None = None
    ) -> list[torch.Tensor]: ...
    @overload
    async def get(
        self, refs: Iterable[Ref], *, to: Literal["tensor"], timeout: float | None = None
    ) -> list[Tensor]: ...

    async def get(
        self, refs: Ref | Iterable[Ref], *, to: Form = "numpy", timeout: float | None = None
    ) -> Any:
        """Fetches the tensor of one ref, or of each of several, each from its own rank.

        Args:
            refs: A ref, or several in any order.
            to: "numpy": numpy arrays, or ``Tensor`` where numpy lacks the dtype. "torch": torch tensors on
                the CPU. "tensor": ``Tensor``.
            timeout: Seconds for the whole transfer. None: the default.
        """
        fetched = await self._channels.run_all(self._on_owners(refs, ops.get, to=to, timeout=timeout))
        return fetched[0] if isinstance(refs, Ref) else fetched

    async def create(
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
        return await self._channels.run_all(
            self._creates(await self._members(group), dtype, shape, init, device)
        )

    @overload
    async def describe(self, refs: Ref) -> Ref: ...
    @overload
    async def describe(self, refs: Iterable[Ref]) -> list[Ref]: ...

    async def describe(self, refs: Ref | Iterable[Ref]) -> Ref | list[Ref]:
        """Asks for dtype, shape and device, as they are now, of one ref or of several in any order."""
        described = await self._channels.run_all(self._on_owners(refs, ops.describe))
        return described[0] if isinstance(refs, Ref) else described

    async def list_refs(self) -> list[list[Ref]]:
        """Lists, by rank, the refs of the current session, in the order in which they were made."""
        pages = await self._channels.run_all(self._on(self._all(), ops.list_refs))
        return [
            [*page.refs, *(await rank._more_refs(page.next_page_token) if page.next_page_token else ())]
            for rank, page in zip(self, pages, strict=True)
        ]

    async def release(self, refs: Ref | Iterable[Ref]) -> int:
        """Frees refs of any ranks and sessions, and gives their number.

        Those of one rank and session are freed all or none; if one rank refuses, others may have freed
        theirs.
        """
        return sum(await self._channels.run_all(self._releases(refs)))
