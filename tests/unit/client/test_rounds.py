"""Taking turns: whose turn it is when, and what becomes of a turn that fails."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
from tests.unit.client.fronts import compat
from tests.unit.client.sidecars import SidecarGang

import rankbridge
from rankbridge import GangError, InvalidArgumentError, rounds_of
from rankbridge._plan.rounds import rounds_on_hosts
from rankbridge.v1 import collective_service_pb2, rank_service_pb2


@pytest.mark.parametrize(
    ("members", "n", "round_of_rank"),
    [
        (1, 1, [0]),
        (2, 2, [0, 0]),
        (4, 1, [0, 1, 2, 3]),
        (4, 2, [0, 1, 0, 1]),
        (4, 3, [0, 1, 0, 1]),
        (8, 3, [0, 1, 2, 0, 1, 2, 0, 1]),
        (3, 8, [0, 0, 0]),
    ],
)
def test_the_order_is_that_of_olmo(members: int, n: int, round_of_rank: list[int]) -> None:
    rounds = rounds_of(members, n)
    found = {place: number for number, places in enumerate(rounds) for place in places}
    assert [found[place] for place in range(members)] == round_of_rank


def test_everybody_has_one_turn_and_at_most_n_at_once() -> None:
    for members, n in itertools.product(range(1, 18), range(1, 20)):
        rounds = rounds_of(members, n)
        assert sorted(place for places in rounds for place in places) == list(range(members))
        assert max(map(len, rounds)) <= n
        assert len(rounds) == -(-members // n)


@pytest.mark.parametrize(
    ("hosts", "rounds"),
    [
        ("aabb", [(0, 2), (1, 3)]),
        ("abab", [(0, 1), (2, 3)]),
        ("aaab", [(0, 3), (1,), (2,)]),
        ("a", [(0,)]),
    ],
)
def test_by_default_it_is_one_on_each_host(hosts: str, rounds: list[tuple[int, ...]]) -> None:
    assert rounds_on_hosts(list(hosts)) == rounds


def test_each_round_ends_with_a_barrier_and_tells_its_ranks(gang: Any, sidecars: SidecarGang) -> None:
    barriers = []
    seen = []
    for turns in compat(gang, "olmo").do_n_at_a_time(2):
        barriers.append(len(sidecars[0].requests.get("Barrier", [])))
        assert (len(turns), turns.count) == (2, 2)
        assert [turn.rank_in_group for turn in turns] == [turn.rank.rank for turn in turns]
        seen.append((turns.number, turns.ranks))
    assert seen == [(0, (0, 2)), (1, (1, 3))]
    assert barriers == [0, 1]
    assert [len(sidecar.requests["Barrier"]) for sidecar in sidecars.sidecars] == [2] * 4


def test_without_a_number_hosts_are_asked_for(gang: Any, sidecars: SidecarGang) -> None:
    for sidecar, host in zip(sidecars.sidecars, "aabb", strict=True):
        sidecar.answers["DescribeRank"] = lambda *_, host=host: rank_service_pb2.DescribeRankResponse(
            host=host
        )
    assert [turns.ranks for turns in compat(gang, "olmo").do_n_at_a_time()] == [(0, 2), (1, 3)]


def test_ranks_are_those_of_the_group_in_its_order(gang: Any, sidecars: SidecarGang) -> None:
    group = rankbridge.Group(name="turned", ranks=(3, 1, 0, 2))
    for sidecar in sidecars.sidecars:
        sidecar.groups[group.name] = group.ranks
    assert [turns.ranks for turns in compat(gang, "olmo").do_n_at_a_time(3, group=group)] == [(3, 0), (1, 2)]


def test_a_turn_that_fails_leaves_the_others_theirs_and_is_told_at_the_end(gang: Any) -> None:
    ranks_in_turn = []

    def take() -> None:
        for turns in compat(gang, "olmo").do_n_at_a_time(1):
            for turn in turns:
                with turn as rank:
                    ranks_in_turn.append(rank.rank)
                    if rank.rank % 2:
                        raise rankbridge.ResourceExhaustedError("full", rank=rank.rank)

    with pytest.raises(rankbridge.ResourceExhaustedError) as caught:
        take()
    assert ranks_in_turn == [0, 1, 2, 3]
    assert isinstance(caught.value, GangError)
    assert [(it.rank, it.error is None) for it in caught.value.outcomes] == [
        (0, True),
        (1, False),
        (2, True),
        (3, False),
    ]


def test_an_error_of_the_program_is_raised_as_it_is(gang: Any) -> None:
    def take() -> None:
        for turns in compat(gang, "olmo").do_n_at_a_time(2):
            for turn in turns:
                with turn as rank:
                    if rank.rank == 0:
                        raise rankbridge.ResourceExhaustedError("full")
                    if rank.rank == 1:
                        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine") as caught:
        take()
    assert len(caught.value.__notes__) == 2
    assert "In the turn of rank 0: ResourceExhaustedError" in caught.value.__notes__[0]


def test_outside_of_a_turn_an_error_ends_the_rounds(gang: Any, sidecars: SidecarGang) -> None:
    def take() -> None:
        for turns in compat(gang, "olmo").do_n_at_a_time(2):
            assert turns.number == 0
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        take()
    assert not sidecars[0].requests.get("Barrier")
    gang.barrier()


def test_what_interrupts_the_program_is_not_kept(gang: Any) -> None:
    turns = next(iter(compat(gang, "olmo").do_n_at_a_time(4)))
    for kind in (KeyboardInterrupt, GeneratorExit):
        with pytest.raises(kind), turns.turns[0]:
            raise kind
    assert turns.turns[0].error is None


def test_a_barrier_that_fails_ends_the_rounds_and_tells_of_turns_that_had_failed(
    gang: Any, sidecars: SidecarGang
) -> None:
    for sidecar in sidecars.sidecars:
        error = sidecar.error("PEER_LOST", "rank 9 is gone")
        sidecar.answers["Barrier"] = lambda *_, error=error: collective_service_pb2.BarrierResponse(
            error=error
        )

    def take() -> None:
        for turns in compat(gang, "olmo").do_n_at_a_time(2):
            assert turns.number == 0
            with turns.turns[1]:
                raise ValueError("lost otherwise")

    with pytest.raises(rankbridge.PeerLostError) as caught:
        take()
    assert caught.value.__notes__ == ["In the turn of rank 2: ValueError: lost otherwise"]


def test_a_number_that_lets_nobody_in_is_refused_at_once(gang: Any) -> None:
    for n in (0, -1):
        with pytest.raises(InvalidArgumentError, match="nobody"):
            compat(gang, "olmo").do_n_at_a_time(n)
