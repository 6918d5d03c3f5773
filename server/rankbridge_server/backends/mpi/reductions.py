"""Reductions on MPI: its own, and torch's where it has none."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

import torch

from ...core.coordinator import ReduceOp
from ..bytes_coordinator import BytesCoordinator
from ..pieces import as_bytes, byte_counts, side_by_side
from ..reductions import combined, finished, running
from .arithmetic import native
from .channel import Channel


class MpiReductions(BytesCoordinator):
    """The reductions of one member of a group.

    Where MPI has no reduction, each member receives all members' values of its share of the elements, reduces them with
    torch in group order, and sends the result to the others.
    """

    def __init__(self, channel: Channel, rank_in_group: int) -> None:
        super().__init__(rank_in_group, len(channel.ranks))
        self._channel = channel

    def reduce(self, tensor: object, op: ReduceOp, dst_rank_in_group: int, timeout: float) -> object | None:
        """MPI_Ireduce, or torch's reduction of what was exchanged."""
        given = cast(torch.Tensor, tensor).contiguous()
        receives = self._rank_in_group == dst_rank_in_group
        result = self._empty(given.shape if receives else [0], given.dtype)
        if given.numel():
            its, into = native(op, given.dtype), as_bytes(result)
            if its is not None:
                sent = [as_bytes(given).numpy(), its.datatype]
                received = [into.numpy(), its.datatype] if receives else None
                self._channel.collective(
                    lambda comm: comm.Ireduce(sent, received, its.op, dst_rank_in_group), timeout
                )
            else:
                counts = self._share_out(given)
                mine = combined(self._exchanged(as_bytes(given), given.dtype, counts, timeout), op)
                self._gather(as_bytes(mine), into, counts, dst_rank_in_group, timeout)
        return finished(result, op, self._size) if receives else None

    def all_reduce(self, tensor: object, op: ReduceOp, timeout: float) -> object:
        """MPI_Iallreduce, or torch's reduction of what was exchanged."""
        given = cast(torch.Tensor, tensor).contiguous()
        result = self._empty(given.shape, given.dtype)
        if not result.numel():
            return result
        its, into = native(op, given.dtype), as_bytes(result)
        if its is not None:
            sent, received = [as_bytes(given).numpy(), its.datatype], [into.numpy(), its.datatype]
            self._channel.collective(lambda comm: comm.Iallreduce(sent, received, its.op), timeout)
        else:
            counts = self._share_out(given)
            mine = combined(self._exchanged(as_bytes(given), given.dtype, counts, timeout), op)
            self._all_gather(as_bytes(mine), into, counts, timeout)
        return finished(result, op, self._size)

    def reduce_scatter(
        self, tensor: object, op: ReduceOp, dim: int, sizes: Sequence[int], timeout: float
    ) -> object:
        """MPI_Ireduce_scatter of parts side by side, or torch's reduction of what was exchanged."""
        given = cast(torch.Tensor, tensor)
        result = self._empty(
            [*given.shape[:dim], sizes[self._rank_in_group], *given.shape[dim + 1 :]], given.dtype
        )
        if not given.numel():
            return result
        parts, counts = side_by_side(given, dim, sizes), byte_counts(given, dim, sizes)
        its = native(op, given.dtype)
        if its is not None:
            shares = [count // given.itemsize for count in counts]
            sent, received = [parts.numpy(), its.datatype], [as_bytes(result).numpy(), its.datatype]
            self._channel.collective(
                lambda comm: comm.Ireduce_scatter(sent, received, shares, its.op), timeout
            )
        else:
            mine = combined(self._exchanged(parts, given.dtype, counts, timeout), op)
            result = mine.reshape(result.shape).clone()
        return finished(result, op, self._size)

    def scan(self, tensor: object, op: ReduceOp, exclusive: bool, timeout: float) -> object:
        """MPI_Iscan or MPI_Iexscan, or torch's reductions of what was exchanged."""
        given = cast(torch.Tensor, tensor).contiguous()
        result = torch.zeros(given.shape, dtype=given.dtype)
        if not result.numel():
            return result
        its, into = native(op, given.dtype), as_bytes(result)
        if its is not None:
            sent, received = [as_bytes(given).numpy(), its.datatype], [into.numpy(), its.datatype]
            self._channel.collective(
                lambda comm: (comm.Iexscan if exclusive else comm.Iscan)(sent, received, its.op), timeout
            )
            # MPI leaves the first member's result undefined.
            return result.zero_() if exclusive and not self._rank_in_group else result
        counts = self._share_out(given)
        scanned = running(self._exchanged(as_bytes(given), given.dtype, counts, timeout), op)
        if exclusive:
            scanned = [torch.zeros_like(scanned[0]), *scanned[:-1]]
        mine = [counts[self._rank_in_group]] * self._size
        self._exchange(as_bytes(torch.cat(scanned)), into, mine, counts, timeout)
        return result

    def _exchanged(
        self, given: torch.Tensor, dtype: torch.dtype, counts: Sequence[int], timeout: float
    ) -> Sequence[torch.Tensor]:
        """All members' elements that are this one's to reduce, flat.

        `given`: the bytes of this member's elements, of which each member gets as many as its count says.
        """
        mine = counts[self._rank_in_group]
        pieces = self._empty([mine * self._size], torch.uint8)
        self._exchange(given, pieces, counts, [mine] * self._size, timeout)
        return pieces.view(dtype).chunk(self._size) if mine else [pieces.view(dtype)] * self._size

    def _share_out(self, given: torch.Tensor) -> list[int]:
        """Bytes of the elements that each member reduces: nearly the same."""
        elements, members = given.numel(), self._size
        return [
            (elements * (at + 1) // members - elements * at // members) * given.itemsize
            for at in range(members)
        ]
