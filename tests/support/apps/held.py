"""Functions whose collectives are held at breakpoints."""

from __future__ import annotations

import torch
import torch.distributed as dist

import rankbridge_server
from rankbridge_server import BreakpointError, Context


@rankbridge_server.function
def step(context: Context, steps: int, spoiled: int = -1) -> list[float]:
    """Adds gradients up. In the second step, rank `spoiled` has NaN in the second element."""
    sums = []
    for number in range(1, steps + 1):
        gradient = torch.full((4,), float(number))
        if number == 2 and context.rank == spoiled:
            gradient[1] = float("nan")
        dist.all_reduce(gradient)
        sums.append(float(gradient[0]))
    return sums


@rankbridge_server.function
def caught(context: Context) -> str:
    """Says what a collective raises."""
    try:
        dist.broadcast(torch.zeros(2), 0)
    except BreakpointError as error:
        return str(error)
    return ""
