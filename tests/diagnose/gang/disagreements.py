"""Programs in which ranks are asked for different things in the same call."""

from __future__ import annotations

from tests.diagnose.gang.ranks import Rank


def other_collective(rank: Rank) -> None:
    def step(it: int) -> None:
        rank.next_batch()
        if rank.is_hit(it):
            rank.hit()
            rank.client.broadcast(rank.batch, in_place=True)
        else:
            rank.all_reduce()

    rank.run(step)


def extra_barrier(rank: Rank) -> None:
    def step(it: int) -> None:
        if rank.is_hit(it):
            rank.hit()
            rank.client.barrier()
        rank.step(it)

    rank.run(step)


def half_and_half(rank: Rank) -> None:
    def step(it: int) -> None:
        rank.next_batch()
        if it == rank.plan.step and rank.number in (rank.plan.victim, rank.plan.other):
            rank.hit()
            rank.client.barrier()
        else:
            rank.all_reduce()

    rank.run(step)


def other_root(rank: Rank) -> None:
    def step(it: int) -> None:
        rank.next_batch()
        root = rank.plan.other
        if rank.is_hit(it):
            rank.hit()
            root = rank.plan.victim
        rank.client.broadcast(rank.batch, src_rank_in_group=root, in_place=True)
        rank.all_reduce()

    rank.run(step)


def other_shape(rank: Rank) -> None:
    _other_tensor(rank, 24, "float32")


def other_dtype(rank: Rank) -> None:
    _other_tensor(rank, 16, "float64")


def _other_tensor(rank: Rank, elements: int, dtype: str) -> None:
    other = rank.tensor(elements, dtype)

    def step(it: int) -> None:
        rank.next_batch()
        if rank.is_hit(it):
            rank.hit()
            rank.all_reduce(other)
        else:
            rank.all_reduce()

    rank.run(step)


def swallowed(rank: Rank) -> None:
    short = rank.tensor(2)

    def step(it: int) -> None:
        try:
            if rank.is_hit(it):
                rank.hit()
                raise ValueError("a bad batch")
            rank.all_reduce()
        except ValueError:
            pass
        rank.all_reduce(short)

    rank.run(step)


def other_op(rank: Rank) -> None:
    def step(it: int) -> None:
        rank.next_batch()
        if rank.is_hit(it):
            rank.hit()
            rank.all_reduce(op="max")
        else:
            rank.all_reduce()

    rank.run(step)


def other_order(rank: Rank) -> None:
    first, second = rank.tensor(4), rank.tensor(4)

    def step(it: int) -> None:
        rank.next_batch()
        if rank.is_hit(it):
            rank.hit()
            reduce_second()
            reduce_first()
        else:
            reduce_first()
            reduce_second()

    def reduce_first() -> None:
        rank.client.all_reduce(first, in_place=True)

    def reduce_second() -> None:
        rank.client.all_reduce(second, in_place=True)

    rank.run(step)


def other_dim(rank: Rank) -> None:
    square = rank.client.create("float32", [4, 4])

    def step(it: int) -> None:
        rank.next_batch()
        dim = 0
        if rank.is_hit(it):
            rank.hit()
            dim = 1
        rank.client.release(rank.client.all_gather(square, dim=dim))

    rank.run(step)
