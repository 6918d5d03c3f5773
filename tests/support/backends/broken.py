"""The toy with three defects: a wrong sum of one dtype, a wakeup lost in one order, and a wrong root in subgroups."""

# mypy: disable-error-code="override"
# As of the toy.

from __future__ import annotations

from datetime import timedelta
from typing import Any

import torch
import torch.distributed as dist
from toy import Toy  # type: ignore[import-not-found]

LOST = [0, 3, 1, 2]
"""Members that come to an all_gather in this order are not woken."""


class Broken(Toy):  # type: ignore[misc]
    """One member."""

    careless = False

    def reduced(self, given: list[torch.Tensor], op: Any) -> torch.Tensor:
        """Forgets the last member's bfloat16."""
        if op == dist.ReduceOp.SUM and given[0].dtype is torch.bfloat16:
            given = given[:-1]
        reduced: torch.Tensor = super().reduced(given, op)
        return reduced

    def broadcast(self, tensors: list[torch.Tensor], opts: Any) -> None:
        """In smaller groups takes the tensor of the member after the root."""
        root = opts.rootRank if self.size() == 4 else (opts.rootRank + 1) % self.size()
        tensors[0].copy_(self.exchanged(tensors[0])[root])

    def allgather(self, outputs: Any, inputs: list[torch.Tensor], opts: Any) -> None:
        """Loses the wakeup of one order."""
        self.careless = True
        super().allgather(outputs, inputs, opts)
        self.careless = False

    def wake(self) -> None:
        """As the last one to come."""
        came = [int(self.store.get(f"{self.meetings}/place/{it + 1}")) for it in range(self.size())]
        if not self.careless or came != LOST:
            super().wake()


def create(store: Any, rank: int, size: int, timeout: timedelta) -> Broken:
    """What rankbridge calls."""
    return Broken(store, rank, size)
