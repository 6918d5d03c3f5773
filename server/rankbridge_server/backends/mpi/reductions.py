"""Reductions on MPI: its own, and steps of our own where it has none."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

import torch

from ...core.coordinator import ReduceOp
from ..pieces import as_bytes, byte_counts, side_by_side, with_size
from ..reductions import finished
from ..stepwise import StepwiseReductions
from .arithmetic import native
from .channel import Channel


class MpiReductions(StepwiseReductions):
    """The reductions of one member of a group."""

    def __init__(self, channel: Channel, rank_in_group: int) -> None:
        super().__init__(rank_in_group, len(channel.ranks))
        self._channel = channel

    def reduce(self, tensor: object, op: ReduceOp, dst_rank_in_group: int, timeout: float) -> object | None:
        """MPI_Ireduce, or steps of our own."""
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
                result = self._reduce_stepwise(given, op, dst_rank_in_group, timeout)
        return finished(result, op, self._size) if receives else None

    def all_reduce(self, tensor: object, op: ReduceOp, timeout: float) -> object:
        """MPI_Iallreduce, or steps of our own."""
        given = cast(torch.Tensor, tensor).contiguous()
        result = self._empty(given.shape, given.dtype)
        if not result.numel():
            return result
        its, into = native(op, given.dtype), as_bytes(result)
        if its is not None:
            sent, received = [as_bytes(given).numpy(), its.datatype], [into.numpy(), its.datatype]
            self._channel.collective(lambda comm: comm.Iallreduce(sent, received, its.op), timeout)
        else:
            result = self._all_reduce_stepwise(given, op, timeout)
        return finished(result, op, self._size)

    def reduce_scatter(
        self, tensor: object, op: ReduceOp, dim: int, sizes: Sequence[int], timeout: float
    ) -> object:
        """MPI_Ireduce_scatter of parts side by side, or steps of our own."""
        given = cast(torch.Tensor, tensor)
        result = self._empty(with_size(given.shape, dim, sizes[self._rank_in_group]), given.dtype)
        if not given.numel():
            return result
        its = native(op, given.dtype)
        if its is not None:
            parts, counts = side_by_side(given, dim, sizes), byte_counts(given, dim, sizes)
            shares = [count // given.itemsize for count in counts]
            sent, received = [parts.numpy(), its.datatype], [as_bytes(result).numpy(), its.datatype]
            self._channel.collective(
                lambda comm: comm.Ireduce_scatter(sent, received, shares, its.op), timeout
            )
        else:
            result = self._reduce_scatter_stepwise(given, op, dim, sizes, timeout)
        return finished(result, op, self._size)

    def scan(self, tensor: object, op: ReduceOp, exclusive: bool, timeout: float) -> object:
        """MPI_Iscan or MPI_Iexscan, or steps of our own."""
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
        return self._scan_stepwise(given, op, exclusive, timeout)
