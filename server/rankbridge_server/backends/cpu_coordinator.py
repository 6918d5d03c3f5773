"""One member of a group on a process group of torch that moves tensors in the host's memory."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from typing import ClassVar, Protocol, cast

import torch
from torch._C._distributed_c10d import AllgatherOptions, GatherOptions, ScatterOptions, Work

from ..core.coordinator import ReduceOp
from .errors import data_failed
from .pieces import as_bytes
from .process_group import OPS, ProcessGroup, ProcessGroupCoordinator, Tensors, TorchReduceOp, options
from .reductions import on_bytes


class CpuGroup(ProcessGroup, Protocol):
    """The collectives that Gloo has beside those of NCCL."""

    def scatter(self, outputs: Tensors, inputs: Sequence[Tensors], opts: ScatterOptions, /) -> Work:
        """Scatter `inputs`, empty except at the root, into `outputs`."""

    def gather(self, outputs: Sequence[Tensors], inputs: Tensors, opts: GatherOptions, /) -> Work:
        """Gather into `outputs`, empty except at the root."""

    def allgather(self, outputs: Sequence[Tensors], inputs: Tensors, opts: AllgatherOptions, /) -> Work:
        """Gather into `outputs` everywhere."""


Start = Callable[[CpuGroup], Work | None]


class CpuCoordinator(ProcessGroupCoordinator[CpuGroup]):
    """Implements `core.coordinator.Coordinator`; a subclass waits for what was started."""

    engine: ClassVar[str]
    """What errors call it."""

    def __init__(self, group: CpuGroup, rank_in_group: int, size: int) -> None:
        super().__init__(rank_in_group, size)
        self._group: CpuGroup | None = group
        # The tensor of barriers: its sum stays 0. Equal on all ranks, whatever a job's default dtype is at the time.
        self._token = [torch.zeros(1, dtype=torch.float32)]

    def barrier(self, timeout: float) -> None:
        """The engine's all_reduce of one element, as strict as a barrier: on Gloo it takes half of the time."""
        chosen = self._reducing(OPS[ReduceOp.SUM], timeout)
        self._run(lambda group: group.allreduce(self._token, chosen), timeout)

    def send(self, tensor: object, dst_rank_in_group: int, tag: int, timeout: float) -> None:
        """The engine's send; Gloo's ends when the receiver has begun to receive."""
        given = cast(torch.Tensor, tensor).contiguous()
        if given.numel():
            self._wait(
                [lambda group: group.send([as_bytes(given)], dst_rank_in_group, tag)], timeout, pair=True
            )

    def recv(self, tensor: object, src_rank_in_group: int, tag: int, timeout: float) -> None:
        """The engine's receive, in place."""
        into = cast(torch.Tensor, tensor)
        if into.numel():
            self._wait(
                [lambda group: group.recv([as_bytes(into)], src_rank_in_group, tag)], timeout, pair=True
            )

    def close(self) -> None:
        """Releases the group. Blocks while an operation is in flight."""
        self._group = None

    def _scatter(
        self,
        parts: torch.Tensor,
        part: torch.Tensor,
        counts: Sequence[int],
        src_rank_in_group: int,
        timeout: float,
    ) -> None:
        """The engine's scatter; with different sizes, its all_to_all."""
        if len(set(counts)) > 1:
            super()._scatter(parts, part, counts, src_rank_in_group, timeout)
            return
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
        """The engine's gather; with different sizes, its all_to_all."""
        if len(set(counts)) > 1:
            super()._gather(part, parts, counts, dst_rank_in_group, timeout)
            return
        outputs = [list(parts.chunk(self._size))] if parts.numel() else []
        chosen = options(GatherOptions, timeout, rootRank=dst_rank_in_group)
        self._run(lambda group: group.gather(outputs, [part], chosen), timeout)

    def _all_gather(
        self, part: torch.Tensor, parts: torch.Tensor, counts: Sequence[int], timeout: float
    ) -> None:
        """The engine's all_gather; with different sizes, its broadcasts."""
        if len(set(counts)) > 1:
            super()._all_gather(part, parts, counts, timeout)
            return
        places, chosen = parts.chunk(self._size), options(AllgatherOptions, timeout)
        self._run(lambda group: group.allgather([places], [part], chosen), timeout)

    def _numbers(self, tensor: torch.Tensor, op: ReduceOp) -> tuple[torch.Tensor, TorchReduceOp]:
        return tensor, OPS[on_bytes(op, tensor.dtype)]

    def _run(self, start: Start, timeout: float) -> None:
        self._run_together([start], timeout)

    def _run_together(self, starts: Sequence[Start], timeout: float) -> None:
        self._wait(starts, timeout)

    @abstractmethod
    def _wait(self, starts: Sequence[Start], timeout: float, *, pair: bool = False) -> None:
        """Starts operations and waits for all. Raises BACKEND_FAILED.

        `pair`: of sends and receives, which have no options that would hold their timeout.
        """

    def _open_group(self) -> CpuGroup:
        """The group. Raises BACKEND_FAILED when it was closed."""
        if self._group is None:
            raise data_failed(self.engine, "the group was closed")
        return self._group
