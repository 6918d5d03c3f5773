"""Reductions in steps of our own, where an engine has none."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from ..core.coordinator import ReduceOp
from .bytes_coordinator import BytesCoordinator
from .pieces import as_bytes, byte_counts, side_by_side, with_size
from .reductions import combined, running


class StepwiseReductions(BytesCoordinator):
    """Each member receives all values of its share of the elements, reduces them with torch, and sends the result.

    They are reduced in group order. The tensors have elements; the sum for `avg` is not divided yet.
    """

    def _reduce_stepwise(
        self, given: torch.Tensor, op: ReduceOp, dst_rank_in_group: int, timeout: float
    ) -> torch.Tensor:
        """The reduction of contiguous tensors at the destination; elsewhere a tensor without elements."""
        receives = self._rank_in_group == dst_rank_in_group
        result = self._empty(given.shape if receives else [0], given.dtype)
        counts = self._share_out(given)
        mine = combined(self._exchanged(as_bytes(given), given.dtype, counts, timeout), op)
        self._gather(as_bytes(mine), as_bytes(result), counts, dst_rank_in_group, timeout)
        return result

    def _all_reduce_stepwise(self, given: torch.Tensor, op: ReduceOp, timeout: float) -> torch.Tensor:
        """The reduction of contiguous tensors, everywhere."""
        result = self._empty(given.shape, given.dtype)
        counts = self._share_out(given)
        mine = combined(self._exchanged(as_bytes(given), given.dtype, counts, timeout), op)
        self._all_gather(as_bytes(mine), as_bytes(result), counts, timeout)
        return result

    def _reduce_scatter_stepwise(
        self, given: torch.Tensor, op: ReduceOp, dim: int, sizes: Sequence[int], timeout: float
    ) -> torch.Tensor:
        """This member's part of the reduction."""
        shape = with_size(given.shape, dim, sizes[self._rank_in_group])
        parts, counts = side_by_side(given, dim, sizes), byte_counts(given, dim, sizes)
        mine = combined(self._exchanged(parts, given.dtype, counts, timeout), op)
        return mine.reshape(shape).clone()

    def _scan_stepwise(
        self, given: torch.Tensor, op: ReduceOp, exclusive: bool, timeout: float
    ) -> torch.Tensor:
        """The reduction of the contiguous tensors of the members up to this one; exclusive: before it, zeros first."""
        result = self._empty(given.shape, given.dtype)
        counts = self._share_out(given)
        scanned = running(self._exchanged(as_bytes(given), given.dtype, counts, timeout), op)
        if exclusive:
            scanned = [torch.zeros_like(scanned[0]), *scanned[:-1]]
        mine = [counts[self._rank_in_group]] * self._size
        self._exchange(torch.cat([as_bytes(it) for it in scanned]), as_bytes(result), mine, counts, timeout)
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
