"""A model with a name, for tests: each rank has a replica of its own."""

from __future__ import annotations

import torch

import rankbridge_server
from rankbridge_server import Context

torch.manual_seed(1)
MODEL = torch.nn.Linear(3, 2)
EXTRA = {
    "odd": torch.tensor([1.0, float("nan"), float("inf"), -2.0]),
    # A name of characters that mean something in a pattern.
    "a[*]?": torch.zeros(2),
}
rankbridge_server.expose(model=MODEL, extra=EXTRA)


@rankbridge_server.on_formed
def formed(context: Context) -> None:
    """Shows what the ranks do not have alike."""
    if context.rank == 0:
        rankbridge_server.expose(unlike={"mine": torch.zeros(3, dtype=torch.int64)})
    else:
        rankbridge_server.expose(unlike={"shape": torch.zeros(context.rank)}, writable=True)


@rankbridge_server.function
def spoil(context: Context, rank: int) -> None:
    """Changes one element each of two tensors on one rank."""
    if context.rank == rank:
        MODEL.weight.data[1, 2] += 0.5
        EXTRA["a[*]?"][1] = -1.0
