"""Functions whose collectives are held at breakpoints."""

from __future__ import annotations

import time

import torch
import torch.distributed as dist
from torch._C import _distributed_c10d as c10d

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


@rankbridge_server.function
def late(context: Context, seconds: float, how: str) -> float:
    """Rank 1 is late for a sum, for which the others wait: `sync` or `async`."""
    if context.rank == 1:
        time.sleep(seconds)
    ones = torch.ones(4)
    if how == "sync":
        dist.all_reduce(ones)
    else:
        work = dist.all_reduce(ones, async_op=True)
        assert work is not None
        work.wait()
    return float(ones[0])


@rankbridge_server.function
def compared(context: Context) -> str:
    """Rank 2 calls another collective in a group whose calls torch compares; says what is raised."""
    level = c10d.get_debug_level()
    c10d.set_debug_level(c10d.DebugLevel.DETAIL)
    try:
        group = dist.new_group(list(range(context.world_size)), group_desc="compared")
        if context.rank == 2:
            dist.broadcast(torch.ones(4), 0, group)
        else:
            dist.all_reduce(torch.ones(4), group=group)
    except RuntimeError as error:
        return str(error)
    finally:
        c10d.set_debug_level(level)
    return ""


@rankbridge_server.function
def hooked(context: Context) -> list[bool]:
    """Whether somebody is called before each collective, and whether one is followed to its end."""
    from rankbridge_server.job.watch import hook

    recorder = hook._recorder
    return [] if recorder is None else [bool(recorder.before), bool(recorder.followed)]
