"""One member of a group on somebody else's process group."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import Any, cast

import torch
from torch._C._distributed_c10d import BarrierOptions, ReduceScatterOptions, Store

from ...core.coordinator import ReduceOp
from ..bounded import GRACE_S, DidNotReturn, bounded
from ..cpu_coordinator import CpuCoordinator, CpuGroup, Start
from ..errors import data_failed
from ..pieces import divided
from ..process_group import options

CLOSE_S = 5.0


class C10dCoordinator(CpuCoordinator):
    """Implements `core.coordinator.Coordinator` on what an author's module has made.

    `has`: the methods of the group that it implements. `store`: is kept for as long as the group. `stuck`: a
    call has not returned.
    """

    engine = "The c10d backend"

    def __init__(
        self, group: CpuGroup, rank_in_group: int, size: int, has: frozenset[str], store: Store | None = None
    ) -> None:
        super().__init__(group, rank_in_group, size)
        self._has = has
        self._store = store
        self.stuck = False

    def barrier(self, timeout: float) -> None:
        """The engine's barrier; if it has none, its all_reduce of one element."""
        if "barrier" not in self._has:
            super().barrier(timeout)
            return
        chosen = options(BarrierOptions, timeout)
        self._run(lambda group: cast(Any, group).barrier(chosen), timeout)

    def reduce_scatter(
        self, tensor: object, op: ReduceOp, dim: int, sizes: Sequence[int], timeout: float
    ) -> object:
        """The engine's reduce_scatter of equal parts; else a part of its all_reduce."""
        given = cast(torch.Tensor, tensor)
        if "reduce_scatter" not in self._has or len(set(sizes)) > 1 or not given.numel():
            return super().reduce_scatter(tensor, op, dim, sizes, timeout)
        # Copies: an engine may reduce in them.
        numbered = [self._numbers(it.clone(), op) for it in divided(given, dim, sizes)]
        result = torch.empty_like(numbered[0][0])
        chosen = options(ReduceScatterOptions, timeout, reduceOp=numbered[0][1])
        parts = [it for it, _ in numbered]
        self._run(lambda group: cast(Any, group).reduce_scatter([result], [parts], chosen), timeout)
        return result

    def close(self) -> None:
        """Ends what still goes on, if the engine can, and releases the group."""
        group, self._group = self._group, None
        ending = getattr(group, "abort" if self.stuck else "shutdown", None)
        if ending is not None:
            with suppress(Exception):
                bounded(ending, CLOSE_S, "c10d-closing")
        self._store = None

    def _wait(self, starts: Sequence[Start], timeout: float, *, pair: bool = False) -> None:
        group = self._open_group()

        def run() -> None:
            for work in [start(group) for start in starts]:
                if work is not None:
                    work.wait()

        try:
            bounded(run, timeout + GRACE_S, "c10d")
        except DidNotReturn as error:
            self.stuck = True
            raise data_failed(self.engine, str(error)) from error
        except Exception as error:
            raise data_failed(self.engine, f"{type(error).__name__}: {error}") from error
