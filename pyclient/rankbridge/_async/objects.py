"""Collectives on values by value and on maps of tensors, for asyncio."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Unpack

from rankbridge._async.front import AsyncGangFront, AsyncRankFront
from rankbridge._plan import operations as ops
from rankbridge._plan import procedures as procedures
from rankbridge._plan.groups import Group
from rankbridge._plan.operations import CallOptions, ReduceOp

__all__ = ["AsyncGangObjects", "AsyncRankObjects"]


class AsyncGangObjects(AsyncGangFront):
    """What a ``AsyncGang`` does with values that have no dtype and shape: whatever ``to_value`` takes, of any size.

    The results come as ``from_value`` gives them. ``**options`` are ``CallOptions``, and what fails is told, as for
    tensors.
    """

    async def broadcast_object(
        self, value: object, *, src_rank_in_group: int = 0, **options: Unpack[CallOptions]
    ) -> list[Any]:
        """Gives every member the source's value, as vLLM's ``broadcast_object``.

        Args:
            value: What the source sends.
            src_rank_in_group: Who sends it.
            **options: See the class.

        Returns:
            The value, once for each member, in group order.

        Raises:
            RankOutOfRangeError: There is no such source. No rank was asked.
        """
        return await self._called("broadcast_object", value, src_rank_in_group=src_rank_in_group, **options)

    async def broadcast_object_list(
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
        listed = ops.checked_list("broadcast_object_list", values)
        return await self._called("broadcast_object", listed, src_rank_in_group=src_rank_in_group, **options)

    async def scatter_object(
        self, values: Sequence[object], *, src_rank_in_group: int = 0, **options: Unpack[CallOptions]
    ) -> list[Any]:
        """Gives every member its own of the source's values, as ``torch.distributed.scatter_object_list``.

        Args:
            values: What the source sends: one value for each member, in group order.
            src_rank_in_group: Who sends them.
            **options: See the class.

        Returns:
            What each member got, in group order.

        Raises:
            InvalidArgumentError: It is no list of one for each member. No rank was asked.
        """
        return await self._called("scatter_object", values, src_rank_in_group=src_rank_in_group, **options)

    async def gather_object(
        self, values: Sequence[object], *, dst_rank_in_group: int = 0, **options: Unpack[CallOptions]
    ) -> list[list[Any] | None]:
        """Gives one member all members' values, as ``torch.distributed.gather_object``.

        Args:
            values: What each member brings, in group order.
            dst_rank_in_group: Who gets them.
            **options: See the class.

        Returns:
            The list of all at the destination's place, None at all others.
        """
        return await self._called("gather_object", values, dst_rank_in_group=dst_rank_in_group, **options)

    async def all_gather_object(
        self, values: Sequence[object], **options: Unpack[CallOptions]
    ) -> list[list[Any]]:
        """Gives every member all members' values, as ``torch.distributed.all_gather_object``.

        Args:
            values: What each member brings, in group order.
            **options: See the class.

        Returns:
            For each member, in group order, the list of all.
        """
        return await self._called("all_gather_object", values, **options)

    async def all_reduce_value(
        self, values: Sequence[float], *, op: ReduceOp = "sum", **options: Unpack[CallOptions]
    ) -> list[Any]:
        """Gives every member the reduction of all members' numbers, as OLMo-core's ``all_reduce_value``.

        Unlike there, nothing goes through float32: ints are added exactly and stay ints, floats stay float64.

        Args:
            values: What each member brings, in group order: bools, ints or floats, all of one kind.
            op: As of `all_reduce`. Bools have no "avg", floats no bitwise ones; the average of ints is a float.
            **options: See the class.

        Returns:
            The number, once for each member.

        Raises:
            InvalidArgumentError: Something is no number. No rank was asked.
            GangError: ``UnsupportedDtypeError``: numbers of this kind have no such op; ``MismatchError``: they are
                not of one kind, or the ops differ.
        """
        return await self._called("all_reduce_value", values, op=op, **options)

    async def broadcast_tensor_dict(
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
        return await self._carried_out(
            procedures.broadcasting_tensor_dict(
                self, tensors, metadata_group, {**options, "src_rank_in_group": src_rank_in_group}
            )
        )

    async def all_gather_objects(
        self, values: Sequence[object], **options: Unpack[CallOptions]
    ) -> list[list[Any]]:
        """Gives every member all members' values: `all_gather_object` under optimus-dl's name."""
        return await self._called("all_gather_object", values, **options)

    async def broadcast_objects(
        self, values: Sequence[object], *, src_rank_in_group: int = 0, **options: Unpack[CallOptions]
    ) -> list[list[Any]]:
        """Gives every member the source's list of values: `broadcast_object_list` under optimus-dl's name."""
        listed = ops.checked_list("broadcast_objects", values)
        return await self._called("broadcast_object", listed, src_rank_in_group=src_rank_in_group, **options)


class AsyncRankObjects(AsyncRankFront):
    """What a ``AsyncRank`` does with its own value as a member of a group; what it means, ``AsyncGang`` tells of each."""

    async def broadcast_object(
        self, value: object = None, *, src_rank_in_group: int = 0, **options: Unpack[CallOptions]
    ) -> Any:
        """Gives the source's value; `value` counts at the source alone. See ``AsyncGang.broadcast_object``."""
        call = ops.broadcast_object(self._scope, value, src_rank_in_group=src_rank_in_group, **options)
        return await self._run(call)

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
        call = ops.broadcast_object(self._scope, given, src_rank_in_group=src_rank_in_group, **options)
        listed: list[Any] = await self._run(call)
        return listed

    async def scatter_object(
        self,
        values: Sequence[object] | None = None,
        *,
        src_rank_in_group: int = 0,
        **options: Unpack[CallOptions],
    ) -> Any:
        """Gives this member's of the source's values; `values` count there alone. See ``AsyncGang.scatter_object``."""
        call = ops.scatter_object(self._scope, values, src_rank_in_group=src_rank_in_group, **options)
        return await self._run(call)

    async def gather_object(
        self, value: object, *, dst_rank_in_group: int = 0, **options: Unpack[CallOptions]
    ) -> list[Any] | None:
        """Gives the list of all values at the destination, elsewhere None. See ``AsyncGang.gather_object``."""
        call = ops.gather_object(self._scope, value, dst_rank_in_group=dst_rank_in_group, **options)
        return await self._run(call)

    async def all_gather_object(self, value: object, **options: Unpack[CallOptions]) -> list[Any]:
        """Gives the list of all values. See ``AsyncGang.all_gather_object``."""
        return await self._run(ops.all_gather_object(self._scope, value, **options))

    async def all_reduce_value(
        self, value: float, *, op: ReduceOp = "sum", **options: Unpack[CallOptions]
    ) -> Any:
        """Gives the reduction of all members' numbers. See ``AsyncGang.all_reduce_value``."""
        return await self._run(ops.all_reduce_value(self._scope, value, op=op, **options))

    async def broadcast_tensor_dict(
        self,
        tensors: Mapping[Any, Any] | None = None,
        *,
        src_rank_in_group: int = 0,
        **options: Unpack[CallOptions],
    ) -> dict[Any, Any]:
        """Gives the source's map; `tensors` count at the source alone. See ``AsyncGang.broadcast_tensor_dict``."""
        call = ops.broadcast_tensor_dict(self._scope, tensors, src_rank_in_group=src_rank_in_group, **options)
        return await self._run(call)
