"""One member of a group on Gloo."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from datetime import timedelta
from typing import cast

import torch
from torch._C._distributed_c10d import AllreduceOptions

from ...core.coordinator import ReduceOp
from ..cpu_coordinator import CpuCoordinator, CpuGroup, Start
from ..errors import data_failed
from ..pieces import copied
from ..process_group import TorchReduceOp
from ..reductions import is_stepwise
from ..stepwise import StepwiseReductions
from .sockets import GroupSockets


class GlooCoordinator(StepwiseReductions, CpuCoordinator):
    """Implements `core.coordinator.Coordinator` on one ProcessGroupGloo.

    `sockets`: the group's, whose connections are hung up when it is closed. None: they are not known.
    """

    engine = "Gloo"

    def __init__(
        self, group: CpuGroup, rank_in_group: int, size: int, sockets: GroupSockets | None = None
    ) -> None:
        super().__init__(group, rank_in_group, size)
        self._sockets = sockets
        # The threads that are inside the group.
        self._entered: set[int] = set()
        self._reductions: dict[tuple[object, float], AllreduceOptions] = {}

    def reduce(self, tensor: object, op: ReduceOp, dst_rank_in_group: int, timeout: float) -> object | None:
        """Gloo's reduce, on a copy, or steps of our own."""
        given = cast(torch.Tensor, tensor)
        if not is_stepwise(op, given.dtype) or not given.numel():
            return super().reduce(tensor, op, dst_rank_in_group, timeout)
        result = self._reduce_stepwise(given.contiguous(), op, dst_rank_in_group, timeout)
        return result if self._rank_in_group == dst_rank_in_group else None

    def all_reduce(self, tensor: object, op: ReduceOp, timeout: float) -> object:
        """Gloo's all_reduce, on a copy, or steps of our own."""
        given = cast(torch.Tensor, tensor)
        if not is_stepwise(op, given.dtype) or not given.numel():
            return super().all_reduce(tensor, op, timeout)
        return self._all_reduce_stepwise(given.contiguous(), op, timeout)

    def reduce_scatter(
        self, tensor: object, op: ReduceOp, dim: int, sizes: Sequence[int], timeout: float
    ) -> object:
        """A part of Gloo's all_reduce, or steps of our own."""
        given = cast(torch.Tensor, tensor)
        if not is_stepwise(op, given.dtype) or not given.numel():
            return super().reduce_scatter(tensor, op, dim, sizes, timeout)
        return self._reduce_scatter_stepwise(given, op, dim, sizes, timeout)

    def scan(self, tensor: object, op: ReduceOp, exclusive: bool, timeout: float) -> object:
        """Steps of our own."""
        given = cast(torch.Tensor, tensor).contiguous()
        return self._scan_stepwise(given, op, exclusive, timeout) if given.numel() else copied(given)

    def close(self) -> None:
        """Releases the group. Blocks while an operation is in flight."""
        # Its last reference is the end of it.
        _group, self._group = self._group, None
        if self._sockets is not None and not self._entered:
            self._sockets.hang_up()

    def _reducing(self, its: TorchReduceOp, timeout: float) -> AllreduceOptions:
        """Options of an all_reduce, cached: making them takes as long as sending a small message."""
        known = self._reductions.get((its, timeout))
        if known is None:
            known = self._reductions[its, timeout] = super()._reducing(its, timeout)
        return known

    def _wait(self, starts: Sequence[Start], timeout: float, *, pair: bool = False) -> None:
        self._entered.add(threading.get_ident())
        waits = (timedelta(seconds=timeout),) if pair else ()
        try:
            group = self._open_group()
            for work in [start(group) for start in starts]:
                if work is not None:
                    work.wait(*waits)
        except (RuntimeError, ValueError) as error:
            raise data_failed(self.engine, str(error)) from error
        finally:
            self._entered.discard(threading.get_ident())
