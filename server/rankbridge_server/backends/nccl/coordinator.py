"""One member of a group on NCCL."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import cast

import torch

from ...core.coordinator import Captured, ReduceOp
from ..pieces import as_bytes, side_by_side, with_size
from ..process_group import OPS, ProcessGroupCoordinator, TorchReduceOp, options
from .channel import Channel
from .raw import AllgatherOptions, NcclGroup, ReduceScatterOptions, Work
from .reductions import numbers


class NcclCoordinator(ProcessGroupCoordinator[NcclGroup]):
    """Implements `core.coordinator.Coordinator` on communicators for collectives, and for sends and receives.

    And `Capturing`: what it does on the communicator for collectives can be captured. A result that is returned is
    there: the device has done its part.
    """

    def __init__(
        self, collectives: Channel, messages: Channel, device: torch.device, rank_in_group: int, size: int
    ) -> None:
        super().__init__(rank_in_group, size, device)
        self._collectives = collectives
        self._messages = messages

    def barrier(self, timeout: float) -> None:
        """NCCL's all_reduce of one element."""
        with self._inside():
            token, chosen = torch.zeros(1, device=self._device), self._reducing(OPS[ReduceOp.SUM], timeout)
            self._run(lambda group: group.allreduce([token], chosen), timeout)

    def reduce_scatter(
        self, tensor: object, op: ReduceOp, dim: int, sizes: Sequence[int], timeout: float
    ) -> object:
        """NCCL's reduce_scatter of parts side by side; of different sizes, a part of its all_reduce."""
        if len(set(sizes)) > 1:
            return super().reduce_scatter(tensor, op, dim, sizes, timeout)
        given = cast(torch.Tensor, tensor)
        with self._inside():
            result = self._empty(with_size(given.shape, dim, sizes[0]), given.dtype)
            if result.numel():
                values, its = numbers(side_by_side(given, dim, sizes).view(given.dtype), op)
                into, _ = numbers(result, op)
                chosen = options(ReduceScatterOptions, timeout, reduceOp=its)
                self._run(lambda group: group._reduce_scatter_base(into, values, chosen), timeout)
            return result

    def send(self, tensor: object, dst_rank_in_group: int, tag: int, timeout: float) -> None:
        """NCCL's send. NCCL has no tags: both ends send and receive in one order."""
        with self._messages.inside():
            given = cast(torch.Tensor, tensor).contiguous()
            if given.numel():
                data = as_bytes(given)
                self._messages.run_together([lambda group: group.send([data], dst_rank_in_group, 0)], timeout)

    def recv(self, tensor: object, src_rank_in_group: int, tag: int, timeout: float) -> None:
        """NCCL's receive, in place."""
        result = cast(torch.Tensor, tensor)
        if not result.numel():
            return
        with self._messages.inside():
            data = as_bytes(result)
            self._messages.run_together([lambda group: group.recv([data], src_rank_in_group, 0)], timeout)

    def capture(
        self,
        inputs: Sequence[object],
        enter: Callable[[Sequence[object]], Sequence[object]],
        timeout: float,
    ) -> Captured | None:
        """Capture collectives in a CUDA graph."""
        return self._collectives.capture(cast(Sequence[torch.Tensor], inputs), enter, timeout)

    def close(self) -> None:
        """End what runs, and free the communicators."""
        self._collectives.close()
        self._messages.close()

    def _inside(self) -> AbstractContextManager[None]:
        return self._collectives.inside()

    def _all_gather(
        self, part: torch.Tensor, parts: torch.Tensor, counts: Sequence[int], timeout: float
    ) -> None:
        """NCCL's all_gather; with different sizes, its broadcasts."""
        if len(set(counts)) > 1:
            super()._all_gather(part, parts, counts, timeout)
            return
        chosen = options(AllgatherOptions, timeout)
        self._run(lambda group: group._allgather_base(parts, part, chosen), timeout)

    def _numbers(self, tensor: torch.Tensor, op: ReduceOp) -> tuple[torch.Tensor, TorchReduceOp]:
        return numbers(tensor, op)

    def _run(self, start: Callable[[NcclGroup], Work | None], timeout: float) -> None:
        self._collectives.run(start, timeout)

    def _run_together(self, starts: Sequence[Callable[[NcclGroup], Work | None]], timeout: float) -> None:
        self._collectives.run_together(starts, timeout)
