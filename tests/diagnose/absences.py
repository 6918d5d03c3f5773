"""Programs in which a rank does not come, sends what nobody takes, or ends."""

from __future__ import annotations

import atexit
import os
import signal
import threading
import time

import torch
import torch.distributed as dist
from tests.diagnose.ranks import PLAN, RANK, STEPS, Job, hit, is_hit, run, stall
from tests.diagnose.stalls import LONG_S, STALLS


def moving_threads(job: Job) -> None:
    def beat() -> None:
        while True:
            time.sleep(0.02)

    threading.Thread(target=beat, daemon=True).start()
    stall(job, STALLS["asleep"], (PLAN.victim,))


def in_subgroup(job: Job) -> None:
    def step(it: int) -> None:
        job.step(it)
        if is_hit(it):
            hit()
            time.sleep(LONG_S)
        dist.all_reduce(torch.ones(3), group=job.pair)

    run(step)


def in_ddp(job: Job) -> None:
    model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(32, 32))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)

    def step(it: int) -> None:
        if is_hit(it):
            hit()
            time.sleep(LONG_S)
        optimizer.zero_grad()
        model(job.next_batch(it).repeat(2)).sum().backward()
        optimizer.step()

    run(step)


def in_objects(job: Job) -> None:
    def step(it: int) -> None:
        found: list[object] = [None] * dist.get_world_size()
        if is_hit(it):
            hit()
            time.sleep(LONG_S)
        job.next_batch(it)
        dist.all_gather_object(found, {"step": it})

    run(step)


def teardown(job: Job) -> None:
    def wait() -> None:
        hit()
        time.sleep(LONG_S)

    for it in range(STEPS):
        if is_hit(it):
            atexit.register(wait)
            return
        job.step(it)


def thread_at_exit(job: Job) -> None:
    for it in range(STEPS):
        if is_hit(it):
            threading.Thread(target=time.sleep, args=[LONG_S]).start()
            hit()
            return
        job.step(it)


def killed(job: Job) -> None:
    def die() -> None:
        os.kill(os.getpid(), signal.SIGKILL)

    stall(job, die, (PLAN.victim,))


def fewer_steps(job: Job) -> None:
    for it in range(STEPS):
        if is_hit(it):
            hit()
            return
        job.step(it)


def raises(job: Job) -> None:
    def fail() -> None:
        raise ValueError("a bad batch")

    stall(job, fail, (PLAN.victim,))


def slow_rank(job: Job) -> None:
    def step(it: int) -> None:
        if PLAN.victim == RANK:
            time.sleep(0.15)
            if it == 25:
                hit()
        job.step(it)

    run(step)


def busy_rank(job: Job) -> None:
    def step(it: int) -> None:
        if PLAN.victim == RANK:
            until = time.monotonic() + 0.15
            while time.monotonic() < until:
                torch.ones(64, 64) @ torch.ones(64, 64)
            if it == 25:
                hit()
        job.step(it)

    run(step)
