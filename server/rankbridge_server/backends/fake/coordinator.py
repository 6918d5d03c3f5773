"""One member of a group in one process."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import cast

import torch

from ...core.coordinator import Coordinator, ReduceOp
from ..pieces import as_bytes, concatenated, divided
from ..reductions import combined, finished
from .meeting import Exchanged, Meeting


class FakeCoordinator(Coordinator):
    """Implements `core.coordinator.Coordinator` on a meeting; reduces in the order of ranks in the group."""

    def __init__(self, meeting: Meeting, rank_in_group: int, left: Callable[[], None]) -> None:
        self._meeting = meeting
        self._rank_in_group = rank_in_group
        self._left = left

    def barrier(self, timeout: float) -> None:
        """Exchanges nothing."""
        self._meeting.exchange(self._rank_in_group, None, timeout)

    def broadcast(self, tensor: object, src_rank_in_group: int, timeout: float) -> object:
        """A copy of the source's tensor."""
        return self._exchange(tensor, timeout)[src_rank_in_group].clone()

    def scatter(
        self, tensor: object, src_rank_in_group: int, dim: int, sizes: Sequence[int], timeout: float
    ) -> object:
        """A copy of this member's part of the source's tensor."""
        whole = self._exchange(tensor, timeout)[src_rank_in_group]
        return divided(whole, dim, sizes)[self._rank_in_group].clone()

    def gather(
        self, tensor: object, dst_rank_in_group: int, dim: int, sizes: Sequence[int], timeout: float
    ) -> object | None:
        """The members' tensors, concatenated along `dim`."""
        given = self._exchange(tensor, timeout)
        return _joined(given, dim) if self._rank_in_group == dst_rank_in_group else None

    def reduce(self, tensor: object, op: ReduceOp, dst_rank_in_group: int, timeout: float) -> object | None:
        """The reduction of the members' tensors."""
        given = self._exchange(tensor, timeout)
        return _reduced(given, op) if self._rank_in_group == dst_rank_in_group else None

    def all_reduce(self, tensor: object, op: ReduceOp, timeout: float) -> object:
        """The reduction of the members' tensors."""
        return self._reduced_once(tensor, op, timeout).clone()

    def reduce_scatter(
        self, tensor: object, op: ReduceOp, dim: int, sizes: Sequence[int], timeout: float
    ) -> object:
        """This member's part of the reduction."""
        whole = self._reduced_once(tensor, op, timeout)
        return divided(whole, dim, sizes)[self._rank_in_group].clone()

    def all_gather(self, tensor: object, dim: int, sizes: Sequence[int], timeout: float) -> object:
        """The members' tensors, concatenated along `dim`."""
        return _joined(self._exchange(tensor, timeout), dim)

    def all_to_all(self, tensor: object, dim: int, sizes: Sequence[Sequence[int]], timeout: float) -> object:
        """This member's parts of all tensors, concatenated along `dim`."""
        given = self._exchange(tensor, timeout)
        mine = [divided(it, dim, row)[self._rank_in_group] for it, row in zip(given, sizes, strict=True)]
        return _joined(mine, dim)

    def scan(self, tensor: object, op: ReduceOp, exclusive: bool, timeout: float) -> object:
        """The reduction of the tensors of the members up to this one."""
        given = self._exchange(tensor, timeout)[: self._rank_in_group + (not exclusive)]
        return _reduced(given, op) if given else torch.zeros_like(cast(torch.Tensor, tensor))

    def send(self, tensor: object, dst_rank_in_group: int, tag: int, timeout: float) -> None:
        """Puts a copy into the meeting."""
        self._meeting.put(dst_rank_in_group, tag, cast(torch.Tensor, tensor).clone())

    def recv(self, tensor: object, src_rank_in_group: int, tag: int, timeout: float) -> None:
        """Waits for the tensor in the meeting."""
        cast(torch.Tensor, tensor).copy_(self._meeting.take(self._rank_in_group, tag, timeout))

    def close(self) -> None:
        """Breaks the meeting."""
        self._meeting.close()
        self._left()

    def _exchange(self, tensor: object, timeout: float) -> Sequence[torch.Tensor]:
        return cast(Sequence[torch.Tensor], self._offer(tensor, timeout))

    def _reduced_once(self, tensor: object, op: ReduceOp, timeout: float) -> torch.Tensor:
        """The reduction, made once for all members: made by each, it would take time quadratic in their number."""
        return self._offer(tensor, timeout).computed_once(lambda given: _reduced(given, op))

    def _offer(self, tensor: object, timeout: float) -> Exchanged:
        # A copy: the caller may change its tensor while others still read this one.
        given = cast(torch.Tensor, tensor).clone()
        return self._meeting.exchange(self._rank_in_group, given, timeout)


def _joined(given: Sequence[torch.Tensor], dim: int) -> torch.Tensor:
    pieces = torch.cat([as_bytes(piece) for piece in given]).view(given[0].dtype)
    return concatenated(pieces, given[0].shape, dim, [piece.shape[dim] for piece in given])


def _reduced(given: Sequence[torch.Tensor], op: ReduceOp) -> torch.Tensor:
    return finished(combined((given[0].clone(), *given[1:]), op), op, len(given))
