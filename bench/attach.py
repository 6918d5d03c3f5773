"""`python -m bench.attach`: what a sidecar that nobody calls costs the job that it is attached to.

A DDP training of a small model on four ranks, attached and not, in turn in one run. Between two blocks of steps every
rank attaches or detaches.

All the while a process beside each rank wakes every 10 ms, as Gloo's thread in the sidecar does: a virtual core that
nothing wakes falls asleep between a step's messages, so that any such thread makes the steps faster.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from datetime import timedelta
from statistics import median

import torch
import torch.distributed as dist
from torch import nn
from torch.multiprocessing.spawn import spawn
from torch.nn.parallel import DistributedDataParallel

import rankbridge_server

_IDLE_S = 5.0
_WAKES = "import time\nwhile True: time.sleep(0.01)"


def rank_of_job(rank: int, size: int, store: str, blocks: int, steps: int) -> None:
    """One rank; rank 0 prints."""
    torch.set_num_threads(1)
    dist.init_process_group("gloo", f"file://{store}", timedelta(seconds=120), size, rank)
    torch.manual_seed(0)
    layers = nn.Sequential(nn.Linear(128, 256), nn.ReLU(), nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, 10))
    model = DistributedDataParallel(layers)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    batch = torch.randn(32, 128)

    def block() -> float:
        dist.barrier()
        start = time.perf_counter()
        for _ in range(steps):
            optimizer.zero_grad()
            model(batch).square().mean().backward()
            optimizer.step()
        dist.barrier()
        return time.perf_counter() - start

    def attached() -> float:
        rankbridge_server.attach().wait(60)
        try:
            return block()
        finally:
            dist.barrier()
            rankbridge_server.detach()

    with subprocess.Popen([sys.executable, "-c", _WAKES]) as waking:
        try:
            block()
            times: list[tuple[float, float, float]] = []
            for number in range(blocks):
                order = (block, attached, block) if number % 2 else (block, block, attached)
                first, second, third = (it() for it in order)
                times.append((first, second, third) if number % 2 else (first, third, second))
        finally:
            waking.kill()
    alone = _idle()
    rankbridge_server.attach().wait(60)
    idle = _idle() - alone
    dist.barrier()
    rankbridge_server.detach()
    if rank == 0:
        report(times, steps, idle)
    dist.destroy_process_group()


def _idle() -> float:
    """The part of one core that this process takes while the job waits."""
    dist.barrier()
    start = time.process_time()
    time.sleep(_IDLE_S)
    return (time.process_time() - start) / _IDLE_S


def report(times: Sequence[tuple[float, float, float]], steps: int, idle: float) -> None:
    """Prints the ratios. `times`: seconds of blocks: not attached, attached, not attached again."""
    off, on, again = map(median, zip(*times, strict=True))
    ratios = sorted(with_it / without for without, with_it, _ in times)
    quarter = len(ratios) // 4
    print(
        f"steps/s  without {steps / off:.1f}   attached {steps / on:.1f}   without again {steps / again:.1f}"
    )
    middle = f"{ratios[quarter]:.4f} to {ratios[-1 - quarter]:.4f}"
    print(f"time of a step, attached / without: {median(ratios):.4f} (middle half of the blocks: {middle})")
    print(f"the same of two blocks without, which is the noise: {median(b / a for a, _, b in times):.4f}")
    print(f"while the job waits, the sidecar takes {idle:.3%} of a core")


def main() -> None:
    """Runs the job."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--size", type=int, default=4, help="ranks (default: %(default)s)")
    parser.add_argument("--blocks", type=int, default=20, help="blocks of each kind (default: %(default)s)")
    parser.add_argument("--steps", type=int, default=300, help="steps of a block (default: %(default)s)")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        arguments = (options.size, os.path.join(directory, "store"), options.blocks, options.steps)
        spawn(rank_of_job, arguments, options.size)  # type: ignore[no-untyped-call]


if __name__ == "__main__":
    main()
