"""One member of a group on Gloo."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

from torch._C._distributed_c10d import AllreduceOptions

from ..cpu_coordinator import CpuCoordinator, CpuGroup, Start
from ..errors import data_failed
from ..process_group import TorchReduceOp


class GlooCoordinator(CpuCoordinator):
    """Implements `core.coordinator.Coordinator` on one ProcessGroupGloo."""

    engine = "Gloo"

    def __init__(self, group: CpuGroup, rank_in_group: int, size: int) -> None:
        super().__init__(group, rank_in_group, size)
        self._reductions: dict[tuple[object, float], AllreduceOptions] = {}

    def _reducing(self, its: TorchReduceOp, timeout: float) -> AllreduceOptions:
        """Options of an all_reduce, cached: making them takes as long as sending a small message."""
        known = self._reductions.get((its, timeout))
        if known is None:
            known = self._reductions[its, timeout] = super()._reducing(its, timeout)
        return known

    def _wait(self, starts: Sequence[Start], timeout: float, *, pair: bool = False) -> None:
        group = self._open_group()
        waits = (timedelta(seconds=timeout),) if pair else ()
        try:
            for work in [start(group) for start in starts]:
                if work is not None:
                    work.wait(*waits)
        except (RuntimeError, ValueError) as error:
            raise data_failed(self.engine, str(error)) from error
