"""Functions whose own calls of torch.distributed are recorded."""

from __future__ import annotations

import time
from pathlib import Path

import torch
import torch.distributed as dist

import rankbridge_server
from rankbridge_server import Context

_kept: list[object] = []


@rankbridge_server.function
def reduce(context: Context, after: str = "") -> float:
    """A collective to which rank 1 comes once a file is there."""
    while context.rank == 1 and after and not Path(after).exists():
        time.sleep(0.01)
    tensor = torch.full((2,), 1.0 + context.rank)
    dist.all_reduce(tensor)
    return float(tensor[0])


@rankbridge_server.function
def post(context: Context) -> None:
    """A send and its receive."""
    tensor = torch.zeros(3)
    if context.rank == 0:
        dist.send(tensor, 1, tag=5)
    else:
        dist.recv(tensor, 0, tag=5)


@rankbridge_server.function
def unawaited(context: Context) -> None:
    """A collective for which nobody waits, and one that shows that all ranks have done it."""
    dist.all_reduce(torch.zeros(1), async_op=True)
    dist.barrier()


@rankbridge_server.function
def refused_unawaited(context: Context) -> None:
    """A collective that Gloo does not know, and for which nobody waits."""
    work = dist.all_reduce(torch.zeros(1, dtype=torch.int16), async_op=True)
    _kept.append(work)
    # Gloo's next barrier would fail with it.
    while not work.is_completed():
        time.sleep(0.01)


@rankbridge_server.function
def refused(context: Context) -> str:
    """A collective that Gloo does not know; what it says."""
    try:
        dist.all_reduce(torch.zeros(1, dtype=torch.int16))
    except (RuntimeError, ValueError) as error:
        return str(error)
    return ""
