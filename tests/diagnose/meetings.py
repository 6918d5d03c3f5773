"""Programs in which calls do not meet: groups, sends and receives in another order."""

from __future__ import annotations

import time

import torch
import torch.distributed as dist
from tests.diagnose.ranks import PLAN, RANK, Job, hit, new_group, run
from tests.diagnose.stalls import LONG_S


def two_groups(job: Job) -> None:
    both = new_group([PLAN.victim, PLAN.partner])
    inverted = PLAN.victim == RANK

    def step(it: int) -> None:
        groups = [job.pair, both]
        if RANK in (PLAN.victim, PLAN.partner):
            if it == PLAN.step and inverted:
                hit()
                groups.reverse()
            for group in groups:
                dist.all_reduce(torch.ones(4), group=group)
        dist.all_reduce(job.next_batch(it))

    run(step)


def p2p(job: Job, tag: int = 0, peer: int | None = None) -> None:
    """The victim sends to its partner; at its step with another tag, or to another rank."""

    def step(it: int) -> None:
        batch = job.next_batch(it)
        wrong = it == PLAN.step
        if PLAN.victim == RANK:
            if wrong:
                hit()
            dist.send(
                batch, peer if wrong and peer is not None else PLAN.partner, tag=1 + (tag if wrong else 0)
            )
        elif PLAN.partner == RANK:
            dist.recv(batch, PLAN.victim, tag=1)
        dist.all_reduce(batch)

    run(step)


def p2p_size(job: Job) -> None:
    def step(it: int) -> None:
        batch = job.next_batch(it)
        if PLAN.victim == RANK:
            wrong = it == PLAN.step
            if wrong:
                hit()
            dist.send(torch.ones(64) if wrong else batch, PLAN.partner)
        elif PLAN.partner == RANK:
            dist.recv(batch, PLAN.victim)
        dist.all_reduce(batch)

    run(step)


def waited(work: dist.Work | None) -> None:
    """Waits for it; None is for ranks that are no members."""
    if work is not None:
        work.wait()


def p2p_work(job: Job) -> None:
    """The victim sleeps; its partner waits for it in a receive that no record has, and all others for the partner."""

    def step(it: int) -> None:
        batch = job.next_batch(it)
        if PLAN.victim == RANK:
            if it == PLAN.step:
                hit()
                time.sleep(LONG_S)
            waited(dist.isend(batch, PLAN.partner))
        elif PLAN.partner == RANK:
            waited(dist.irecv(batch, PLAN.victim))
        dist.all_reduce(batch)

    run(step)


def p2p_never_sent(job: Job) -> None:
    def step(it: int) -> None:
        batch = job.next_batch(it)
        if PLAN.victim == RANK:
            if it == PLAN.step:
                hit()
                time.sleep(LONG_S)
            dist.send(batch, PLAN.partner)
        elif PLAN.partner == RANK:
            dist.recv(batch, PLAN.victim)
        dist.all_reduce(batch)

    run(step)


def p2p_and_collective(job: Job) -> None:
    def step(it: int) -> None:
        batch = job.next_batch(it)
        wrong = it == PLAN.step
        if PLAN.victim == RANK:
            if wrong:
                hit()
                dist.all_reduce(batch)
            dist.send(batch, PLAN.partner)
            if not wrong:
                dist.all_reduce(batch)
        else:
            if PLAN.partner == RANK:
                dist.recv(batch, PLAN.victim)
            dist.all_reduce(batch)

    run(step)
