"""The collectives of a gang on tensors, for asyncio."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Unpack

from rankbridge._async.front import AsyncGangFront
from rankbridge._plan import operations as ops
from rankbridge._plan.operations import CallOptions, ReduceOp
from rankbridge._plan.ref import Ref

__all__ = ["AsyncGangCollectives"]


class AsyncGangCollectives(AsyncGangFront):
    """What a ``AsyncGang`` does with one tensor of each member: refs in group order go in, refs come out.

    ``**options`` are ``CallOptions``: `group` (a ``Group`` or its name), `timeout` in seconds, `operation_id`,
    `generation`. What fails raises one ``GangError``, as told at ``AsyncGang``; the causes told at each method are definite:
    nothing has happened on any rank, no input has changed, and the group is as good as before.
    """

    async def broadcast(
        self,
        refs: Sequence[Ref],
        *,
        src_rank_in_group: int = 0,
        in_place: bool = False,
        **options: Unpack[CallOptions],
    ) -> list[Ref]:
        """Gives every member a tensor equal to the source's.

        Args:
            refs: One of each member, in group order, all of equal dtype and shape.
            src_rank_in_group: Whose tensor is sent.
            in_place: True: the result takes the input's place under the same ref. False: it gets a new ref.
            **options: See the class.
        """
        calls = self._on_refs(
            refs, ops.broadcast, src_rank_in_group=src_rank_in_group, in_place=in_place, **options
        )
        return await self._channels.run_all(calls)

    async def scatter(
        self,
        refs: Sequence[Ref],
        *,
        src_rank_in_group: int = 0,
        dim: int = 0,
        **options: Unpack[CallOptions],
    ) -> list[Ref]:
        """Gives every member its part of the source's tensor, divided equally in group order.

        The parts are those of ``torch.chunk``, as ``torch.distributed.scatter`` gives them: of [8, 3] and four
        members, [2, 3] along dimension 0.

        Args:
            refs: One of each member, in group order: the source's is the whole, the others' are of the part's dtype
                and shape, and say what is expected. They stay as they are.
            src_rank_in_group: Whose tensor is divided.
            dim: Dimension along which to divide; negative counts from the last.
            **options: See the class.

        Raises:
            GangError: ``InvalidArgumentError``: the source's tensor cannot be divided equally along `dim`;
                ``RankOutOfRangeError``; ``MismatchError``: a member expects a part of another dtype or shape, or the
                dims or sources differ.
        """
        calls = self._on_refs(refs, ops.scatter, src_rank_in_group=src_rank_in_group, dim=dim, **options)
        return await self._channels.run_all(calls)

    async def reduce(
        self,
        refs: Sequence[Ref],
        *,
        op: ReduceOp = "sum",
        dst_rank_in_group: int = 0,
        **options: Unpack[CallOptions],
    ) -> list[Ref | None]:
        """Gives one member the element-wise reduction of all members' tensors, as ``torch.distributed.reduce``.

        Unlike there, no input changes.

        Args:
            refs: One of each member, in group order, all of equal dtype and shape.
            op: As of `all_reduce`.
            dst_rank_in_group: Who gets the result.
            **options: See the class.

        Returns:
            A ref at the destination's place, None at all others.

        Raises:
            GangError: ``UnsupportedDtypeError``: the backend has no such reduction; ``RankOutOfRangeError``;
                ``MismatchError``: the members' dtypes, shapes, ops or destinations differ.
        """
        calls = self._on_refs(refs, ops.reduce, op=op, dst_rank_in_group=dst_rank_in_group, **options)
        return await self._channels.run_all(calls)

    async def all_reduce(
        self,
        refs: Sequence[Ref],
        *,
        op: ReduceOp = "sum",
        in_place: bool = False,
        **options: Unpack[CallOptions],
    ) -> list[Ref]:
        """Gives every member the element-wise reduction of all members' tensors.

        Args:
            refs: One of each member, in group order, all of equal dtype and shape.
            op: "sum" (of bool: or), "product" (of bool: and), "min", "max", "avg" (no integers), or of the bits of
                integers and bools "band", "bor", "bxor".
            in_place: True: the result takes the input's place under the same ref. False: it gets a new ref.
            **options: See the class.
        """
        return await self._channels.run_all(
            self._on_refs(refs, ops.all_reduce, op=op, in_place=in_place, **options)
        )

    async def reduce_scatter(
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
            refs: One of each member, in group order, all of equal dtype and shape, one dimension or more.
            op: As of `all_reduce`.
            dim: Dimension along which to divide; negative counts from the last.
            sizes: Size of each member's part along `dim`, in group order, 0 or more; they add up to the tensors'. None:
                equal parts.
            **options: See the class.

        Raises:
            GangError: ``InvalidArgumentError``: the tensors cannot be divided equally along `dim`, or not into `sizes`;
                ``UnsupportedDtypeError``: the backend has no such reduction; ``MismatchError``: the members' dtypes,
                shapes, ops, dims or sizes differ.
        """
        calls = self._on_refs(refs, ops.reduce_scatter, op=op, dim=dim, sizes=sizes, **options)
        return await self._channels.run_all(calls)

    async def all_to_all(
        self,
        refs: Sequence[Ref],
        *,
        dim: int = 0,
        sizes: Sequence[Sequence[int]] | None = None,
        **options: Unpack[CallOptions],
    ) -> list[Ref]:
        """Gives every member its parts of all members' tensors, concatenated in group order.

        As ``torch.distributed.all_to_all_single``, but along any dimension: what each member gets is what it is sent
        first by the first member, then by the second, and so on.

        Args:
            refs: One of each member, in group order, all of equal dtype, one dimension or more, and of equal shape,
                but along `dim` if there are `sizes`.
            dim: Dimension along which to divide and to concatenate; negative counts from the last.
            sizes: ``sizes[a][b]``: size along `dim` of what the a-th member sends the b-th, 0 or more; a row adds up to
                that member's tensor. None: equal parts.
            **options: See the class.

        Raises:
            GangError: ``InvalidArgumentError``: a member's tensor cannot be divided so; ``MismatchError``: the members'
                dtypes, shapes or dims differ, or other callers on other ranks expect other sizes.
            InvalidArgumentError: `sizes` are not a row for each member, with a size for each. Nothing was sent.
        """
        return await self._channels.run_all(
            self._on_refs(refs, ops.all_to_all, dim=dim, sizes=sizes, **options)
        )

    async def scan(
        self,
        refs: Sequence[Ref],
        *,
        op: ReduceOp = "sum",
        exclusive: bool = False,
        **options: Unpack[CallOptions],
    ) -> list[Ref]:
        """Gives member m the element-wise reduction of the tensors of members 0 to m, as MPI's ``Scan``.

        Args:
            refs: One of each member, in group order, all of equal dtype and shape.
            op: As of `all_reduce`, but "avg".
            exclusive: True: of members 0 to m - 1, as MPI's ``Exscan``, and zeros for member 0; of sums only.
            **options: See the class.

        Raises:
            GangError: ``UnsupportedOperationError``: the backend has no scan; ``UnsupportedDtypeError``: it has none
                of these; ``InvalidArgumentError``: an average, or an exclusive scan of anything but sums;
                ``MismatchError``: the members' dtypes, shapes or ops differ.
        """
        return await self._called("scan", refs, op=op, exclusive=exclusive, **options)
