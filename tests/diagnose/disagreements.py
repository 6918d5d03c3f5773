"""Programs in which ranks ask for different things in the same call."""

from __future__ import annotations

import torch
import torch.distributed as dist
from tests.diagnose.ranks import PLAN, RANK, Job, hit, is_hit, run


def other_collective(job: Job) -> None:
    def step(it: int) -> None:
        batch = job.next_batch(it)
        if is_hit(it):
            hit()
            dist.broadcast(batch, 0)
        else:
            dist.all_reduce(batch)

    run(step)


def extra_barrier(job: Job) -> None:
    def step(it: int) -> None:
        if is_hit(it):
            hit()
            dist.barrier()
        job.step(it)

    run(step)


def half_and_half(job: Job) -> None:
    def step(it: int) -> None:
        batch = job.next_batch(it)
        if it == PLAN.step and RANK in (PLAN.victim, PLAN.other):
            hit()
            dist.barrier()
        else:
            dist.all_reduce(batch)

    run(step)


def other_root(job: Job) -> None:
    def step(it: int) -> None:
        batch = job.next_batch(it)
        root = PLAN.other
        if is_hit(it):
            hit()
            root = PLAN.victim
        dist.broadcast(batch, root)
        dist.all_reduce(batch)

    run(step)


def other_shape(job: Job) -> None:
    def step(it: int) -> None:
        batch = job.next_batch(it)
        if is_hit(it):
            hit()
            batch = torch.ones(24)
        dist.all_reduce(batch)

    run(step)


def other_dtype(job: Job) -> None:
    def step(it: int) -> None:
        batch = job.next_batch(it)
        if is_hit(it):
            hit()
            batch = batch.double()
        dist.all_reduce(batch)

    run(step)


def swallowed(job: Job) -> None:
    def step(it: int) -> None:
        job.next_batch(it)
        try:
            if is_hit(it):
                hit()
                raise ValueError("a bad batch")
            dist.all_reduce(torch.ones(8))
        except ValueError:
            pass
        dist.all_reduce(torch.ones(2))

    run(step)


def other_op(job: Job) -> None:
    def step(it: int) -> None:
        batch = job.next_batch(it)
        wrong = is_hit(it)
        if wrong:
            hit()
        dist.all_reduce(batch, dist.ReduceOp.MAX if wrong else dist.ReduceOp.SUM)

    run(step)


def other_order(job: Job) -> None:
    def step(it: int) -> None:
        first, second = torch.ones(4), torch.ones(4)
        job.next_batch(it)
        if is_hit(it):
            hit()
            first, second = second, first
            reduce_second(second)
            reduce_first(first)
        else:
            reduce_first(first)
            reduce_second(second)

    def reduce_first(it: torch.Tensor) -> None:
        dist.all_reduce(it)

    def reduce_second(it: torch.Tensor) -> None:
        dist.all_reduce(it)

    run(step)
