"""Programs in which a rank does not come: its function does not return, or its controller does not call."""

from __future__ import annotations

import time

from tests.diagnose.gang.ranks import STEPS, Rank
from tests.diagnose.stalls import LONG_S


def moving_threads(rank: Rank) -> None:
    rank.client.call("beat")
    rank.stall("asleep", (rank.plan.victim,))


def in_subgroup(rank: Rank) -> None:
    def step(it: int) -> None:
        rank.step(it)
        if rank.is_hit(it):
            rank.client.call("stall", "asleep")
        rank.all_reduce(group=rank.pair)

    rank.run(step)


def in_objects(rank: Rank) -> None:
    def step(it: int) -> None:
        if rank.is_hit(it):
            rank.client.call("stall", "asleep")
        rank.client.all_gather_object({"step": it})

    rank.run(step)


def in_ddp(rank: Rank) -> None:
    """One function on all ranks, in which one stalls while the others wait in torch.distributed."""
    if rank.number == 0:
        rank.gang.call("train", STEPS, victim=rank.plan.victim, at=rank.plan.step)


def in_function(rank: Rank) -> None:
    """One function on all ranks, from which one does not return."""
    if rank.number == 0:
        for it in range(STEPS):
            rank.gang.call("evaluate", rank.plan.victim, 0.01, "asleep" if it == rank.plan.step else "")
            rank.gang.barrier()


def killed(rank: Rank) -> None:
    def step(it: int) -> None:
        if rank.is_hit(it):
            rank.client.call("die")
        rank.step(it)

    rank.run(step)


def raises(rank: Rank) -> None:
    def step(it: int) -> None:
        if rank.is_hit(it):
            rank.client.call("fail")
        rank.step(it)

    rank.run(step)


def fewer_steps(rank: Rank) -> None:
    for it in range(STEPS):
        if rank.is_hit(it):
            rank.hit()
            return
        rank.step(it)


def slow_rank(rank: Rank) -> None:
    def step(it: int) -> None:
        if rank.is_victim:
            rank.next_batch(0.15)
            if it == 25:
                rank.hit()
        rank.step(it)

    rank.run(step)


def busy_rank(rank: Rank) -> None:
    def step(it: int) -> None:
        if rank.is_victim:
            rank.client.call("compute", 0.15)
            if it == 25:
                rank.hit()
        rank.step(it)

    rank.run(step)


def slow_controller(rank: Rank) -> None:
    def step(it: int) -> None:
        if rank.is_victim:
            time.sleep(0.15)
            if it == 25:
                rank.hit()
        rank.step(it)

    rank.run(step)


def stuck_controller(rank: Rank) -> None:
    def step(it: int) -> None:
        if rank.is_hit(it):
            rank.hit()
            time.sleep(LONG_S)
        rank.step(it)

    rank.run(step)
