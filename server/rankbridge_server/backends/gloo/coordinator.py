"""One member of a group on Gloo."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import cast

import torch

from ...core.coordinator import ReduceOp
from ..errors import data_failed
from ..pieces import as_bytes
from ..process_group import OPS, ProcessGroupCoordinator, TorchReduceOp, options
from .raw import AllgatherOptions, AllreduceOptions, GatherOptions, GlooGroup, ScatterOptions, Work


class GlooCoordinator(ProcessGroupCoordinator[GlooGroup]):
    """Implements `core.coordinator.Coordinator` on one ProcessGroupGloo."""

    def __init__(self, group: GlooGroup, rank_in_group: int, size: int) -> None:
        super().__init__(rank_in_group, size)
        self._group: GlooGroup | None = group
        # The tensor of barriers: its sum stays 0. Equal on all ranks, whatever a job's default dtype is at the time.
        self._token = [torch.zeros(1, dtype=torch.float32)]
        self._reductions: dict[tuple[object, float], AllreduceOptions] = {}

    def barrier(self, timeout: float) -> None:
        """Gloo's all_reduce of one element, which takes half the time of Gloo's barrier and is as strict."""
        chosen = self._reducing(OPS[ReduceOp.SUM], timeout)
        self._run(lambda group: group.allreduce(self._token, chosen), timeout)

    def send(self, tensor: object, dst_rank_in_group: int, tag: int, timeout: float) -> None:
        """Gloo's send, which ends when the receiver has begun to receive."""
        given = cast(torch.Tensor, tensor).contiguous()
        if given.numel():
            self._wait([lambda group: group.send([as_bytes(given)], dst_rank_in_group, tag)], timeout)

    def recv(self, tensor: object, src_rank_in_group: int, tag: int, timeout: float) -> None:
        """Gloo's receive, in place."""
        into = cast(torch.Tensor, tensor)
        if into.numel():
            self._wait([lambda group: group.recv([as_bytes(into)], src_rank_in_group, tag)], timeout)

    def close(self) -> None:
        """Releases the group. Blocks while an operation is in flight."""
        self._group = None

    def _scatter(
        self, parts: torch.Tensor, part: torch.Tensor, src_rank_in_group: int, timeout: float
    ) -> None:
        inputs = [parts.chunk(self._size)] if parts.numel() else []
        chosen = options(ScatterOptions, timeout, rootRank=src_rank_in_group)
        self._run(lambda group: group.scatter([part], inputs, chosen), timeout)

    def _gather(
        self,
        part: torch.Tensor,
        parts: torch.Tensor,
        counts: Sequence[int],
        dst_rank_in_group: int,
        timeout: float,
    ) -> None:
        """Gloo's gather; with different sizes, Gloo's all_to_all."""
        if len(set(counts)) > 1:
            super()._gather(part, parts, counts, dst_rank_in_group, timeout)
            return
        outputs = [list(parts.chunk(self._size))] if parts.numel() else []
        chosen = options(GatherOptions, timeout, rootRank=dst_rank_in_group)
        self._run(lambda group: group.gather(outputs, [part], chosen), timeout)

    def _all_gather(
        self, part: torch.Tensor, parts: torch.Tensor, counts: Sequence[int], timeout: float
    ) -> None:
        """Gloo's all_gather; with different sizes, Gloo's broadcasts."""
        if len(set(counts)) > 1:
            super()._all_gather(part, parts, counts, timeout)
            return
        places, chosen = parts.chunk(self._size), options(AllgatherOptions, timeout)
        self._run(lambda group: group.allgather([places], [part], chosen), timeout)

    def _numbers(self, tensor: torch.Tensor, op: ReduceOp) -> tuple[torch.Tensor, TorchReduceOp]:
        # Gloo adds the bytes of bools: the sum may be neither 0 nor 1, and is 0 again with 256 members.
        as_or = tensor.dtype is torch.bool and op is ReduceOp.SUM
        return tensor, OPS[ReduceOp.BOR if as_or else op]

    def _reducing(self, its: TorchReduceOp, timeout: float) -> AllreduceOptions:
        """Options of an all_reduce, cached: making them takes as long as sending a small message."""
        known = self._reductions.get((its, timeout))
        if known is None:
            known = self._reductions[its, timeout] = super()._reducing(its, timeout)
        return known

    def _run(self, start: Callable[[GlooGroup], Work | None], timeout: float) -> None:
        self._run_together([start], timeout)

    def _run_together(self, starts: Sequence[Callable[[GlooGroup], Work | None]], timeout: float) -> None:
        self._wait(starts, None)

    def _wait(self, starts: Sequence[Callable[[GlooGroup], Work | None]], timeout: float | None) -> None:
        """`timeout`: of sends and receives, which take it in `wait`; others have it among their options."""
        group = self._group
        if group is None:
            raise data_failed("Gloo", "the group was closed")
        waits = () if timeout is None else (timedelta(seconds=timeout),)
        try:
            for work in [start(group) for start in starts]:
                if work is not None:
                    work.wait(*waits)
        except (RuntimeError, ValueError) as error:
            raise data_failed("Gloo", str(error)) from error
