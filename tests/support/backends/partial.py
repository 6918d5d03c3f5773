"""A toy with few operations, of which one hangs, raises or loses a rank when the first element says so."""

# mypy: disable-error-code="override, call-arg"
# As of the toy.

from __future__ import annotations

import threading
from datetime import timedelta
from typing import Any

import torch
import torch.distributed as dist
from toy import Toy  # type: ignore[import-not-found]

HANG, RAISE = 13.0, 14.0


class Partial(dist.ProcessGroup):
    """Has a broadcast and an all_reduce, of float32 alone."""

    def __init__(self, toy: Toy) -> None:
        super().__init__(toy.rank(), toy.size())
        self.toy = toy

    def getBackendName(self) -> str:
        """For torch."""
        return "partial"

    def broadcast(self, tensors: list[torch.Tensor], opts: Any) -> None:
        """As the toy's."""
        self.toy.broadcast(tensors, opts)

    def allreduce(self, tensors: list[torch.Tensor], opts: Any) -> None:
        """As the toy's."""
        if tensors[0].dtype is not torch.float32:
            raise NotImplementedError(f"no {tensors[0].dtype}")
        if tensors[0].flatten()[0] == HANG:
            threading.Event().wait()
        if tensors[0].flatten()[0] == RAISE:
            raise LookupError("the author forgot something")
        self.toy.allreduce(tensors, opts)


def create(store: Any, rank: int, size: int, timeout: timedelta) -> Partial:
    """What rankbridge calls."""
    return Partial(Toy(store, rank, size))
