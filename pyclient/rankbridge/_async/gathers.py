"""Collecting all members' tensors, for asyncio."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, Unpack, overload

from rankbridge._async.front import AsyncGangFront, AsyncRankFront
from rankbridge._plan import operations as ops
from rankbridge._plan.operations import CallOptions, GatherLayout
from rankbridge._plan.ref import Ref

__all__ = ["AsyncGangGathers", "AsyncRankGathers"]


class AsyncGangGathers(AsyncGangFront):
    """How a ``AsyncGang`` collects one tensor of each member, in any layout.

    The layouts, of n members with tensors [a, b]:

    - "concatenated": one tensor, side by side along `dim`, the last unless told: [a, n b]. As vLLM's ``gather`` and
      ``all_gather``, and with `sizes` its ``all_gatherv``, but along every dimension: that knows the first alone.
    - "stacked": one tensor with a dimension more, at place `dim`, the first unless told: [n, a, b]. As ``torch.stack``.
    - "list": a tensor for each member. As ``torch.distributed.all_gather``.

    Shapes are alike but for `sizes`, which all callers know, or unless `ragged`: then the members tell each other
    theirs, and may differ along `dim` where they are concatenated, in any size where they are listed.
    """

    @overload
    async def gather(
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
    async def gather(
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

    async def gather(
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
        """Gives one member all members' tensors, in group order.

        With `ragged` and `dim` 0 this is torchgfn's ``gather_distributed_data``.

        Args:
            refs: One of each member, in group order, all of equal dtype.
            dst_rank_in_group: Who gets the result.
            dim: Dimension along which they are put together; negative counts from the last.
            sizes: For concatenated tensors that differ along `dim`: the size of each member's there, in group order.
                None: all are alike.
            layout: "concatenated", "stacked" or "list"; see the class.
            ragged: True: shapes may differ, and nobody needs to know them before.
            **options: See the class.

        Returns:
            At the destination's place a ref, or of a list a list of refs by rank in group; None at all others.

        Raises:
            GangError: ``InvalidArgumentError``: the tensors have no such dimension, or a member's is not of its size;
                ``RankOutOfRangeError``; ``MismatchError``: the members' dtypes, shapes, dims, sizes, layouts or
                destinations differ.
        """
        return await self._called(
            "gather",
            refs,
            dst_rank_in_group=dst_rank_in_group,
            dim=dim,
            sizes=sizes,
            layout=layout,
            ragged=ragged,
            **options,
        )

    @overload
    async def all_gather(
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
    async def all_gather(
        self,
        refs: Sequence[Ref],
        *,
        dim: int | None = None,
        sizes: Sequence[int] | None = None,
        layout: Literal["list"],
        ragged: bool = False,
        **options: Unpack[CallOptions],
    ) -> list[list[Ref]]: ...

    async def all_gather(
        self,
        refs: Sequence[Ref],
        *,
        dim: int | None = None,
        sizes: Sequence[int] | None = None,
        layout: GatherLayout = "concatenated",
        ragged: bool = False,
        **options: Unpack[CallOptions],
    ) -> list[Any]:
        """Gives every member all members' tensors, in group order.

        As a list and `ragged` this is OLMo-core's ``all_gather`` of tensors of unequal shapes.

        Args:
            refs: One of each member, in group order, all of equal dtype.
            dim: Dimension along which they are put together; negative counts from the last.
            sizes: For concatenated tensors that differ along `dim`: the size of each member's there, in group order.
                None: all are alike.
            layout: "concatenated", "stacked" or "list"; see the class.
            ragged: True: shapes may differ, and nobody needs to know them before.
            **options: See the class.

        Returns:
            For each member a ref, or of a list a list of refs by rank in group.

        Raises:
            GangError: ``InvalidArgumentError``: the tensors have no such dimension, or a member's is not of its size;
                ``MismatchError``: the members' dtypes, shapes, dims, sizes or layouts differ.
        """
        return await self._called(
            "all_gather", refs, dim=dim, sizes=sizes, layout=layout, ragged=ragged, **options
        )

    async def all_gather_to_list(
        self, refs: Sequence[Ref], **options: Unpack[CallOptions]
    ) -> list[list[Ref]]:
        """Gives every member a list of all members' tensors: `all_gather` as a list, under optimus-dl's name."""
        return await self._called("all_gather", refs, layout="list", **options)


class AsyncRankGathers(AsyncRankFront):
    """How a ``AsyncRank`` takes part in collecting tensors; what it means, ``AsyncGang`` tells of each."""

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
        """Collects the members' tensors at the destination: a ref or a list of refs there, None elsewhere.

        See ``AsyncGang.gather``.
        """
        call = ops.gather(
            self._scope,
            ref,
            dst_rank_in_group=dst_rank_in_group,
            dim=dim,
            sizes=sizes,
            layout=layout,
            ragged=ragged,
            **options,
        )
        return await self._run(call)

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
        """Collects the members' tensors at all of them: a ref, or a list of refs. See ``AsyncGang.all_gather``."""
        call = ops.all_gather(self._scope, ref, dim=dim, sizes=sizes, layout=layout, ragged=ragged, **options)
        return await self._run(call)
