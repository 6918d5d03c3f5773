"""Programs in which calls do not meet: groups, sends and receives in another order."""

from __future__ import annotations

from tests.diagnose.gang.ranks import Rank


def two_groups(rank: Rank) -> None:
    def step(it: int) -> None:
        groups = [rank.pair, f"again-{rank.number % 2}"]
        if rank.is_hit(it):
            rank.hit()
            groups.reverse()
        for group in groups:
            rank.all_reduce(group=group)
        rank.all_reduce()

    rank.run(step)


def _send(rank: Rank, to: int, tag: int = 1) -> None:
    rank.client.send(rank.batch, dst_rank_in_group=to, tag=tag)


def _receive(rank: Rank, tag: int = 1) -> None:
    rank.client.recv(src_rank_in_group=rank.plan.victim, tag=tag, expected=rank.batch)


def p2p_tag(rank: Rank) -> None:
    _wrong_send(rank, rank.plan.partner, 7)


def p2p_peer(rank: Rank) -> None:
    away = next(it for it in range(4) if it not in (rank.plan.victim, rank.plan.partner))
    _wrong_send(rank, away, 1)


def _wrong_send(rank: Rank, to: int, tag: int) -> None:
    def step(it: int) -> None:
        rank.next_batch()
        if rank.is_hit(it):
            rank.hit()
            _send(rank, to, tag)
        elif rank.is_victim:
            _send(rank, rank.plan.partner)
        elif rank.is_partner:
            _receive(rank)
        rank.all_reduce()

    rank.run(step)


def p2p_size(rank: Rank) -> None:
    long = rank.tensor(64)

    def step(it: int) -> None:
        rank.next_batch()
        if rank.is_hit(it):
            rank.hit()
            rank.client.send(long, dst_rank_in_group=rank.plan.partner, tag=1)
        elif rank.is_victim:
            _send(rank, rank.plan.partner)
        elif rank.is_partner:
            _receive(rank)
        rank.all_reduce()

    rank.run(step)


def p2p_never_sent(rank: Rank) -> None:
    def step(it: int) -> None:
        rank.next_batch()
        if rank.is_hit(it):
            rank.client.call("stall", "asleep")
        if rank.is_victim:
            _send(rank, rank.plan.partner)
        elif rank.is_partner:
            _receive(rank)
        rank.all_reduce()

    rank.run(step)


def p2p_work(rank: Rank) -> None:
    """The victim stalls before its isend; its partner waits for an irecv, and all others for the partner."""

    def step(it: int) -> None:
        rank.next_batch()
        if rank.is_hit(it):
            rank.client.call("stall", "asleep")
        if rank.is_victim:
            rank.client.isend(rank.batch, dst_rank_in_group=rank.plan.partner).wait()
        elif rank.is_partner:
            rank.client.irecv(src_rank_in_group=rank.plan.victim, expected=rank.batch).wait()
        rank.all_reduce()

    rank.run(step)


def p2p_and_collective(rank: Rank) -> None:
    def step(it: int) -> None:
        rank.next_batch()
        if rank.is_hit(it):
            rank.hit()
            rank.all_reduce()
            _send(rank, rank.plan.partner)
            return
        if rank.is_victim:
            _send(rank, rank.plan.partner)
        elif rank.is_partner:
            _receive(rank)
        rank.all_reduce()

    rank.run(step)
