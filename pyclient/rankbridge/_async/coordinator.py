"""What vLLM's ``GroupCoordinator`` has names for, for asyncio."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Unpack, overload

from rankbridge._async.front import AsyncGangFront
from rankbridge._plan import compositions as compositions
from rankbridge._plan import operations as ops
from rankbridge._plan.gang_core import of_gang
from rankbridge._plan.groups import Group
from rankbridge._plan.operations import CallOptions, MemberOptions
from rankbridge._plan.ref import Ref

__all__ = ["AsyncGangCoordinator"]


class AsyncGangCoordinator(AsyncGangFront):
    """As ``GangCoordinator``: what an ``AsyncGang`` does, to be awaited."""

    @overload
    async def all_gatherv(
        self,
        input_: Sequence[Ref],
        dim: int = 0,
        sizes: Sequence[int] | None = None,
        **options: Unpack[CallOptions],
    ) -> list[Ref]: ...
    @overload
    async def all_gatherv(
        self,
        input_: Sequence[Sequence[Ref]],
        dim: int = 0,
        sizes: Sequence[int] | None = None,
        **options: Unpack[CallOptions],
    ) -> list[list[Ref]]: ...

    async def all_gatherv(
        self,
        input_: Sequence[Ref] | Sequence[Sequence[Ref]],
        dim: int = 0,
        sizes: Sequence[int] | None = None,
        **options: Unpack[CallOptions],
    ) -> list[Any]:
        """As ``Gang.all_gatherv``."""
        if len(input_) and isinstance(input_[0], Ref):
            return await self._called("all_gather", input_, dim=dim, sizes=sizes, **options)
        gather = {"dim": dim, "sizes": sizes}
        return await self._carried_out(
            compositions.gathering_each(self, input_, gather, dict(options))  # type: ignore[arg-type]
        )

    async def reduce_scatterv(
        self,
        input_: Sequence[Ref],
        dim: int = -1,
        sizes: Sequence[int] | None = None,
        **options: Unpack[CallOptions],
    ) -> list[Ref]:
        """As ``Gang.reduce_scatterv``."""
        return await self._called("reduce_scatter", input_, dim=dim, sizes=sizes, **options)

    @overload
    async def dispatch(
        self,
        hidden_states: Sequence[Ref],
        router_logits: Sequence[Ref],
        sizes: Sequence[int] | None = None,
        **options: Unpack[CallOptions],
    ) -> tuple[list[Ref], list[Ref]]: ...
    @overload
    async def dispatch(
        self,
        hidden_states: Sequence[Ref],
        router_logits: Sequence[Ref],
        sizes: Sequence[int] | None = None,
        *,
        extra_tensors: Sequence[Sequence[Ref]],
        **options: Unpack[CallOptions],
    ) -> tuple[list[Ref], list[Ref], list[list[Ref]]]: ...

    async def dispatch(
        self,
        hidden_states: Sequence[Ref],
        router_logits: Sequence[Ref],
        sizes: Sequence[int] | None = None,
        *,
        extra_tensors: Sequence[Sequence[Ref]] = (),
        **options: Unpack[CallOptions],
    ) -> Any:
        """As ``Gang.dispatch``."""
        return await self._carried_out(
            compositions.dispatching(self, hidden_states, router_logits, sizes, extra_tensors, dict(options))
        )

    async def combine(
        self,
        hidden_states: Sequence[Ref],
        sizes: Sequence[int] | None = None,
        **options: Unpack[CallOptions],
    ) -> list[Ref]:
        """As ``Gang.combine``."""
        return await self._called("reduce_scatter", hidden_states, dim=0, sizes=sizes, **options)

    async def _all_reduce_out_place(self, input_: Sequence[Ref], **options: Unpack[CallOptions]) -> list[Ref]:
        """As ``Gang._all_reduce_out_place``."""
        return await self._called("all_reduce", input_, **options)

    async def _all_gather_out_place(
        self, input_: Sequence[Ref], dim: int, **options: Unpack[CallOptions]
    ) -> list[Ref]:
        """As ``Gang._all_gather_out_place``."""
        return await self._called("all_gather", input_, dim=dim, **options)

    async def _reduce_scatter_out_place(
        self, input_: Sequence[Ref], dim: int, **options: Unpack[CallOptions]
    ) -> list[Ref]:
        """As ``Gang._reduce_scatter_out_place``."""
        return await self._called("reduce_scatter", input_, dim=dim, **options)

    async def destroy(self, group: str | Group, **options: Unpack[MemberOptions]) -> Group:
        """As ``Gang.destroy``."""
        members = await self._members(group)
        calls = self._on_members(members, ops.destroy_group, group, **options)
        return of_gang((await self._channels.run_all(calls))[0])

    async def prepare_communication_buffer_for_model(
        self, description: Sequence[Mapping[str, Any]], *, group: str | Group = "world", device: str = ""
    ) -> list[dict[str, Ref]]:
        """As ``Gang.prepare_communication_buffer_for_model``."""
        return await self._carried_out(compositions.preparing_buffers(self, description, group, device))
