"""Functions that the ranks of a gang offer to a controller that goes wrong, or does not."""

from __future__ import annotations

import os
import signal
import threading
import time
from pathlib import Path

import torch
import torch.distributed as dist
from tests.diagnose.plan import marker
from tests.diagnose.stalls import STALLS

import rankbridge_server
from rankbridge_server import Context

FOLDER = Path(os.environ["DIAGNOSE_FOLDER"])


@rankbridge_server.function
def next_batch(seconds: float = 0.005) -> None:
    """Ordinary work, which waits."""
    time.sleep(seconds)


@rankbridge_server.function
def compute(seconds: float) -> None:
    """Ordinary work, which computes."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        torch.ones(64, 64) @ torch.ones(64, 64)


@rankbridge_server.function
def stall(context: Context, name: str) -> None:
    """Does not return."""
    marker(FOLDER, context.rank).touch()
    STALLS[name]()


@rankbridge_server.function
def beat() -> None:
    """Begins a thread that moves."""

    def run() -> None:
        while True:
            time.sleep(0.02)

    threading.Thread(target=run, daemon=True).start()


@rankbridge_server.function
def fail(context: Context) -> None:
    """Raises."""
    marker(FOLDER, context.rank).touch()
    raise ValueError("a bad batch")


@rankbridge_server.function
def die(context: Context) -> None:
    """Ends the rank's process."""
    marker(FOLDER, context.rank).touch()
    os.kill(os.getpid(), signal.SIGKILL)


@rankbridge_server.function
def train(context: Context, steps: int, victim: int = -1, at: int = 0, name: str = "asleep") -> None:
    """DDP on all ranks; the victim stalls before the backward of a step."""
    model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(32, 32))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for step in range(steps):
        time.sleep(0.005)
        if context.rank == victim and step == at:
            stall(context, name)
        optimizer.zero_grad()
        model(torch.ones(4, 32)).sum().backward()
        optimizer.step()
        marker(FOLDER, context.rank + 100).touch()


@rankbridge_server.function
def reduce_otherwise(context: Context, victim: int, at: int) -> None:
    """Collectives of torch.distributed on all ranks; the victim calls another one at a step."""
    for step in range(1_000_000):
        time.sleep(0.005)
        if context.rank == victim and step == at:
            marker(FOLDER, context.rank).touch()
            dist.broadcast(torch.ones(4), 0)
        dist.all_reduce(torch.ones(4))


@rankbridge_server.function
def evaluate(context: Context, longest: int, seconds: float, name: str = "") -> None:
    """Called on all ranks, of which one has more to do; or stalls."""
    time.sleep(seconds if context.rank == longest else 0.005)
    if name and context.rank == longest:
        stall(context, name)
