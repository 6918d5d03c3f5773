"""Reductions on MPI: its own, and torch's where it has none."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch

from ...core.coordinator import ReduceOp
from ..pieces import as_bytes, side_by_side
from .arithmetic import combined, finished, native, running
from .binding import MPI
from .buffers import memory
from .channel import Channel


class Reducer:
    """The reductions of one member of a group.

    Where MPI has no reduction, each member receives all members' values of its share of the elements, reduces them with
    torch in group order, and sends the result to the others.
    """

    def __init__(self, channel: Channel, rank_in_group: int) -> None:
        self._channel = channel
        self._rank_in_group = rank_in_group
        self._size = len(channel.ranks)

    def all_reduce(self, given: torch.Tensor, op: ReduceOp, timeout: float) -> torch.Tensor:
        """The reduction of all members' tensors."""
        result = torch.empty(given.shape, dtype=given.dtype)
        if not result.numel():
            return result
        flat, its = given.contiguous(), native(op, given.dtype)
        if its is not None:
            sent, received = [memory(flat), its.datatype], [memory(result), its.datatype]
            self._channel.collective(lambda comm: comm.Iallreduce(sent, received, its.op), timeout)
        else:
            shares = _shares(flat.numel(), self._size)
            mine = combined(self._exchanged(as_bytes(flat), flat.dtype, shares, timeout), op)
            counts = [share * flat.itemsize for share in shares]
            sent, received = [memory(mine), MPI.BYTE], [memory(result), counts, MPI.BYTE]
            self._channel.collective(lambda comm: comm.Iallgatherv(sent, received), timeout)
        return finished(result, op, self._size)

    def reduce(
        self, given: torch.Tensor, op: ReduceOp, dst_rank_in_group: int, timeout: float
    ) -> torch.Tensor | None:
        """The same at the destination, elsewhere None."""
        receives = self._rank_in_group == dst_rank_in_group
        result = torch.empty(given.shape if receives else 0, dtype=given.dtype)
        if given.numel():
            flat, its = given.contiguous(), native(op, given.dtype)
            if its is not None:
                sent = [memory(flat), its.datatype]
                whole = [memory(result), its.datatype] if receives else None
                self._channel.collective(
                    lambda comm: comm.Ireduce(sent, whole, its.op, dst_rank_in_group), timeout
                )
            else:
                shares = _shares(flat.numel(), self._size)
                mine = combined(self._exchanged(as_bytes(flat), flat.dtype, shares, timeout), op)
                part = [memory(mine), MPI.BYTE]
                counts = [share * flat.itemsize for share in shares]
                parts = [memory(result), counts, MPI.BYTE] if receives else None
                self._channel.collective(lambda comm: comm.Igatherv(part, parts, dst_rank_in_group), timeout)
        return finished(result, op, self._size) if receives else None

    def reduce_scatter(
        self, given: torch.Tensor, op: ReduceOp, dim: int, sizes: Sequence[int], timeout: float
    ) -> torch.Tensor:
        """This member's part of the reduction; `sizes` of all members' parts along `dim`."""
        shape = [*given.shape[:dim], sizes[self._rank_in_group], *given.shape[dim + 1 :]]
        result = torch.empty(shape, dtype=given.dtype)
        if not given.numel():
            return result
        parts, its = side_by_side(given, dim, sizes), native(op, given.dtype)
        others = math.prod(given.shape[:dim]) * math.prod(given.shape[dim + 1 :])
        shares = [size * others for size in sizes]
        if its is not None:
            sent, received = [parts.numpy(), its.datatype], [memory(result), its.datatype]
            self._channel.collective(
                lambda comm: comm.Ireduce_scatter(sent, received, shares, its.op), timeout
            )
        else:
            result = combined(self._exchanged(parts, given.dtype, shares, timeout), op).reshape(shape).clone()
        return finished(result, op, self._size)

    def scan(self, given: torch.Tensor, op: ReduceOp, exclusive: bool, timeout: float) -> torch.Tensor:
        """The reduction of the members' tensors up to this one's; `exclusive`: without it, zeros at the first."""
        result = torch.zeros(given.shape, dtype=given.dtype)
        if not result.numel():
            return result
        flat, its = given.contiguous(), native(op, given.dtype)
        if its is not None:
            sent, received = [memory(flat), its.datatype], [memory(result), its.datatype]
            self._channel.collective(
                lambda comm: (comm.Iexscan if exclusive else comm.Iscan)(sent, received, its.op), timeout
            )
            # MPI leaves the first member's result undefined.
            return result.zero_() if exclusive and not self._rank_in_group else result
        shares = _shares(flat.numel(), self._size)
        scanned = running(self._exchanged(as_bytes(flat), flat.dtype, shares, timeout), op)
        if exclusive:
            scanned = [torch.zeros_like(scanned[0]), *scanned[:-1]]
        mine = shares[self._rank_in_group] * flat.itemsize
        going = [memory(torch.cat(scanned)), [mine] * self._size, MPI.BYTE]
        coming = [memory(result), [share * flat.itemsize for share in shares], MPI.BYTE]
        self._channel.collective(lambda comm: comm.Ialltoallv(going, coming), timeout)
        return result

    def _exchanged(
        self, given: torch.Tensor, dtype: torch.dtype, shares: Sequence[int], timeout: float
    ) -> Sequence[torch.Tensor]:
        """All members' elements that are this one's to reduce, flat.

        `given`: the bytes of this member's elements, of which each member gets as many as its share says.
        """
        mine = shares[self._rank_in_group]
        pieces = torch.empty(mine * self._size, dtype=dtype)
        going = [given.numpy(), [share * dtype.itemsize for share in shares], MPI.BYTE]
        coming = [memory(pieces), [mine * dtype.itemsize] * self._size, MPI.BYTE]
        self._channel.collective(lambda comm: comm.Ialltoallv(going, coming), timeout)
        return torch.split(pieces, mine) if mine else [pieces] * self._size


def _shares(elements: int, members: int) -> list[int]:
    """How many of some elements each member reduces: nearly the same."""
    return [elements * (at + 1) // members - elements * at // members for at in range(members)]
