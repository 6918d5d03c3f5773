"""Programs in which nothing is wrong, and nobody must be blamed."""

from __future__ import annotations

import os
import time

import torch
import torch.distributed as dist
from tests.diagnose.plan import marker
from tests.diagnose.ranks import BACKEND, FOLDER, RANK, TIMEOUT, Job, hit, run
from tests.diagnose.rivals import inside as rivals
from tests.diagnose.stalls import LONG_S
from torch._C._distributed_c10d import PrefixStore, TCPStore


def fast(job: Job) -> None:
    run(job.step)


def all_slow(job: Job) -> None:
    def step(it: int) -> None:
        time.sleep(0.6)
        job.step(it)

    run(step)


def taking_turns(job: Job) -> None:
    def step(it: int) -> None:
        if it % dist.get_world_size() == RANK:
            time.sleep(0.3)
        job.step(it)

    run(step)


def checkpoints(job: Job) -> None:
    def step(it: int) -> None:
        if RANK == 0 and it % 20 == 0:
            time.sleep(1.2)
        job.step(it)

    run(step)


def computing(job: Job) -> None:
    def step(it: int) -> None:
        until = time.monotonic() + 0.7
        while time.monotonic() < until:
            torch.ones(64, 64) @ torch.ones(64, 64)
        job.step(it)

    run(step)


def uneven_sizes(job: Job) -> None:
    size = dist.get_world_size()

    def step(it: int) -> None:
        job.next_batch(it)
        given = [RANK + 1] * size
        taken = [it + 1 for it in range(size)]
        dist.all_to_all_single(torch.empty(sum(taken)), torch.ones(sum(given)), taken, given)
        found: list[object] = [None] * size
        dist.all_gather_object(found, "x" * (RANK + 1) * 100)

    run(step)


def pipeline(job: Job) -> None:
    size = dist.get_world_size()

    def step(it: int) -> None:
        batch = job.next_batch(it)
        if RANK:
            dist.recv(batch, RANK - 1)
        time.sleep(0.05)
        if size - 1 > RANK:
            dist.send(batch, RANK + 1)
        if it % 10 == 9:
            dist.barrier()

    run(step)


def other_lines(job: Job) -> None:
    def step(it: int) -> None:
        batch = job.next_batch(it)
        root = it % dist.get_world_size()
        if root == RANK:
            dist.broadcast(batch, root)
        else:
            dist.broadcast(batch, root)

    run(step)


def overlapped(job: Job) -> None:
    def step(it: int) -> None:
        works = [dist.all_reduce(torch.ones(4096), async_op=True) for _ in range(8)]
        job.next_batch(it)
        for work in works:
            work.wait()

    run(step)


def training(job: Job) -> None:
    model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(64, 64))

    def step(it: int) -> None:
        model.zero_grad()
        model(job.next_batch(it).repeat(4)).sum().backward()

    run(step)


def made_anew(job: Job) -> None:
    for it in range(8):
        job.step(it)
    # Who is done first would close connections that others still read.
    time.sleep(0.5)
    dist.destroy_process_group()
    store = TCPStore(os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"]), is_master=False)
    dist.init_process_group(
        BACKEND, store=PrefixStore("anew", store), rank=RANK, world_size=4, timeout=TIMEOUT
    )
    rivals.describe_groups()

    def step(it: int) -> None:
        time.sleep(0.005)
        dist.broadcast(torch.ones(3), 0)
        dist.barrier()

    run(step)


def idle(job: Job) -> None:
    for it in range(20):
        job.step(it)
    hit()
    marker(FOLDER, RANK + 100).touch()
    time.sleep(LONG_S)


def slow_start(job: Job) -> None:
    if RANK == 0:
        time.sleep(3.5)
    marker(FOLDER, RANK + 100).touch()
    run(job.step)
