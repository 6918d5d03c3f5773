# Written by scripts/unasync.py from _async/rank_collectives.py: change that file, not this one.
"""The collectives of one rank on tensors, blocking."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Unpack

from rankbridge._plan import operations as ops
from rankbridge._plan.operations import CallOptions, ReduceOp
from rankbridge._plan.ref import Ref
from rankbridge._sync.front import RankFront

__all__ = ["RankCollectives"]


class RankCollectives(RankFront):
    """What a ``Rank`` does with its own tensor as a member of a group; what they do, ``Gang`` tells of each.

    ``**options`` are ``CallOptions``: `group`, `timeout` in seconds, `operation_id` (none unless given), `generation`.
    """

    def barrier(self, **options: Unpack[CallOptions]) -> None:
        """Waits for all members of the group."""
        return self._run(ops.barrier(self._scope, **options))

    def broadcast(
        self, ref: Ref, *, src_rank_in_group: int = 0, in_place: bool = False, **options: Unpack[CallOptions]
    ) -> Ref:
        """Gives every member a tensor equal to the source's; see ``Gang.broadcast``."""
        call = ops.broadcast(
            self._scope, ref, src_rank_in_group=src_rank_in_group, in_place=in_place, **options
        )
        return self._run(call)

    def scatter(
        self, ref: Ref, *, src_rank_in_group: int = 0, dim: int = 0, **options: Unpack[CallOptions]
    ) -> Ref:
        """Divides the source's tensor among the members; see ``Gang.scatter``."""
        call = ops.scatter(self._scope, ref, src_rank_in_group=src_rank_in_group, dim=dim, **options)
        return self._run(call)

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
        return self._run(call)

    def all_reduce(
        self, ref: Ref, *, op: ReduceOp = "sum", in_place: bool = False, **options: Unpack[CallOptions]
    ) -> Ref:
        """Reduces the members' tensors, element by element; see ``Gang.all_reduce``."""
        return self._run(ops.all_reduce(self._scope, ref, op=op, in_place=in_place, **options))

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
        return self._run(call)

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
        return self._run(call)

    def scan(
        self, ref: Ref, *, op: ReduceOp = "sum", exclusive: bool = False, **options: Unpack[CallOptions]
    ) -> Ref:
        """Reduces the tensors of the members up to this one; see ``Gang.scan``."""
        return self._run(ops.scan(self._scope, ref, op=op, exclusive=exclusive, **options))
