"""A rank of a job: its plan, its groups, its ordinary step."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import torch
import torch.distributed as dist
from tests.diagnose.plan import PAIRS, Plan, marker
from tests.diagnose.rivals import inside as rivals

NAME, SEED, FOLDER = sys.argv[1], int(sys.argv[2]), Path(sys.argv[3])
RANK = int(os.environ["RANK"])
PLAN = Plan.drawn(NAME, SEED)
STEPS = 1_000_000
TIMEOUT = rivals.timeout()
BACKEND = os.environ.get("DIAGNOSE_BACKEND", "gloo")
"""Of all groups. With nccl, tensors are on devices, and a step waits for its own."""
Step = Callable[[int], None]


def hit() -> None:
    """Says that the fault begins."""
    marker(FOLDER, RANK).touch()


def new_group(ranks: Sequence[int]) -> dist.ProcessGroup:
    """A group of the job."""
    made: dist.ProcessGroup = dist.new_group(list(ranks), timeout=TIMEOUT)
    rivals.describe_groups()
    return made


def is_hit(step: int) -> bool:
    """Whether this rank goes wrong at this step."""
    return PLAN.victim == RANK and step == PLAN.step


def use_device() -> None:
    """Makes new tensors on the rank's device."""
    device = torch.device("cuda", RANK % torch.cuda.device_count())
    torch.cuda.set_device(device)
    torch.set_default_device(device)


class Job:
    """Groups of a job, and its ordinary step."""

    def __init__(self) -> None:
        if BACKEND == "nccl":
            use_device()
        # What knows nothing of rankbridge must not import it.
        if "DIAGNOSE_ATTACH" in os.environ:
            from rankbridge_server import attach

            attachment = attach(os.environ["DIAGNOSE_ATTACH"])
            dist.init_process_group(BACKEND, timeout=TIMEOUT)
            attachment.wait()
        else:
            dist.init_process_group(BACKEND, timeout=TIMEOUT)
        # What tells rivals of this one is there from the start.
        rivals.prepare(FOLDER, RANK)
        made = [new_group(pair) for pair in PAIRS]
        self.pair = made[RANK % 2]
        self.late = 0.0

    def next_batch(self, step: int) -> torch.Tensor:
        """Ordinary work, before the step's first collective."""
        time.sleep(0.005)
        rivals.before_collectives()
        return torch.full((16,), float(step))

    def step(self, step: int) -> None:
        """An ordinary step."""
        batch = self.next_batch(step)
        dist.all_reduce(batch)
        dist.all_reduce(batch, group=self.pair)


def run(step: Step) -> None:
    """Does all steps."""
    for it in range(STEPS):
        step(it)
        if BACKEND == "nccl":
            # As a loop does that looks at its loss.
            torch.cuda.synchronize()
        marker(FOLDER, RANK + 100).touch()


def stall(job: Job, what: Callable[[], None], victims: tuple[int, ...]) -> None:
    """Ordinary steps; the victims do something else at theirs."""

    def step(it: int) -> None:
        if it == PLAN.step and RANK in victims:
            hit()
            what()
        job.step(it)

    run(step)
