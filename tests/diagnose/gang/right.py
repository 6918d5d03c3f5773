"""Programs in which nothing is wrong, and nobody must be blamed."""

from __future__ import annotations

import time

from tests.diagnose.gang.ranks import STEPS, Rank
from tests.diagnose.plan import PAIRS
from tests.diagnose.stalls import LONG_S


def fast(rank: Rank) -> None:
    rank.run(rank.step)


def all_slow(rank: Rank) -> None:
    def step(it: int) -> None:
        rank.next_batch(0.6)
        rank.step(it)

    rank.run(step)


def taking_turns(rank: Rank) -> None:
    def step(it: int) -> None:
        if it % len(rank.gang) == rank.number:
            rank.next_batch(0.3)
        rank.step(it)

    rank.run(step)


def checkpoints(rank: Rank) -> None:
    def step(it: int) -> None:
        if rank.number == 0 and it % 20 == 0:
            rank.next_batch(1.2)
        rank.step(it)

    rank.run(step)


def computing(rank: Rank) -> None:
    def step(it: int) -> None:
        rank.client.call("compute", 0.7)
        rank.step(it)

    rank.run(step)


def uneven_sizes(rank: Rank) -> None:
    size = len(rank.gang)
    mine = rank.tensor((rank.number + 1) * size)

    def step(it: int) -> None:
        rank.next_batch()
        given, taken = [rank.number + 1] * size, [it + 1 for it in range(size)]
        got = rank.client.all_to_all(mine, input_sizes=given, output_sizes=taken)
        rank.client.release(got)
        rank.client.all_gather_object("x" * (rank.number + 1) * 100)

    rank.run(step)


def pipeline(rank: Rank) -> None:
    size = len(rank.gang)

    def step(it: int) -> None:
        rank.next_batch()
        if rank.number:
            rank.client.recv(src_rank_in_group=rank.number - 1, expected=rank.batch)
        rank.next_batch(0.05)
        if size - 1 > rank.number:
            rank.client.send(rank.batch, dst_rank_in_group=rank.number + 1)
        if it % 10 == 9:
            rank.client.barrier()

    rank.run(step)


def other_lines(rank: Rank) -> None:
    def step(it: int) -> None:
        rank.next_batch()
        root = it % len(rank.gang)
        if root == rank.number:
            rank.client.broadcast(rank.batch, src_rank_in_group=root, in_place=True)
        else:
            rank.client.broadcast(rank.batch, src_rank_in_group=root, in_place=True)

    rank.run(step)


def overlapped(rank: Rank) -> None:
    def step(it: int) -> None:
        pending = [rank.client.start("all_reduce", rank.batch, in_place=True) for _ in range(8)]
        rank.next_batch()
        for each in pending:
            each.result()

    rank.run(step)


def training(rank: Rank) -> None:
    if rank.number == 0:
        rank.gang.call("train", STEPS)


def made_anew(rank: Rank) -> None:
    for it in range(8):
        rank.step(it)
    rank.client.destroy_group(rank.pair)
    for place, pair in enumerate(PAIRS):
        rank.client.new_group(f"pair-{place}", list(pair))

    def step(it: int) -> None:
        rank.client.broadcast(rank.batch, in_place=True)
        rank.all_reduce(group=rank.pair)

    rank.run(step)


def idle(rank: Rank) -> None:
    for it in range(20):
        rank.step(it)
    rank.hit()
    rank.moved()
    time.sleep(LONG_S)


def slow_start(rank: Rank) -> None:
    if rank.number == 0:
        rank.next_batch(3.5)
    rank.moved()
    rank.run(rank.step)


def uneven_function(rank: Rank) -> None:
    """One function on all ranks, of which one takes longer each time."""
    rank.moved()
    if rank.number == 0:
        for _ in range(STEPS):
            rank.gang.call("evaluate", 1, 2.5)


def one_controller(rank: Rank) -> None:
    """Calls of the gang as a whole, and functions of all ranks."""
    if rank.number:
        rank.moved()
        return
    batches = [rank.gang[it].create("float32", 16) for it in range(len(rank.gang))]
    for _ in range(STEPS):
        rank.gang.call("next_batch")
        rank.gang.all_reduce(batches, in_place=True)
        rank.moved()
