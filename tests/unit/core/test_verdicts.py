"""The texts of what a leader's verdicts mean to people."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from rankbridge_server.core.admission.admission import Arrival, Member, Ruling, Verdict
from rankbridge_server.core.admission.matching import Match, Post, Side
from rankbridge_server.core.admission.verdicts import disagreement, unmatched
from rankbridge_server.core.coordinator import GroupDescription
from rankbridge_server.core.errors import ErrorCode, Failure, Place, RankState
from rankbridge_server.core.groups.group import Group

SUM, MAX = "all_reduce dtype=float32 shape=[3] op=sum", "all_reduce dtype=float32 shape=[3] op=max"


def failure_at_the_first(
    ruling: Ruling, contracts: Sequence[str | None], ranks: Sequence[int] = ()
) -> Failure:
    """What the first member gets; a contract of None: that member has not come."""
    arrivals = [None if it is None else Arrival(0, "x1", it, 10.0) for it in contracts]
    members = tuple(Member(place, None if it is None else str(it)) for place, it in enumerate(arrivals))
    assert arrivals[0] is not None
    return disagreement(
        Verdict(ruling, members), arrivals[0], "world", ranks or range(len(contracts))
    ).failure


def test_a_mismatch_has_a_headline_and_a_line_for_each_side() -> None:
    it = failure_at_the_first(Ruling.MISMATCH, [SUM, SUM, SUM, MAX])
    assert it.code is ErrorCode.MISMATCH
    assert str(it) == (
        "MISMATCH in all_reduce #1 (x1) on world\n  ranks 0-2: float32[3] sum\n  rank 3:    float32[3] max"
    )
    assert (it.expected, it.got) == (f"{SUM} #1 id=x1", f"{MAX} #1 id=x1")
    assert [detail.state for detail in it.ranks] == [RankState.ARRIVED] * 3 + [RankState.DISAGREES]


def test_each_side_has_its_line_of_code_and_the_headline_what_all_share() -> None:
    mine = Arrival(0, "x1", SUM, 10.0)
    sides = [(SUM, "a.py:3"), (SUM, "b.py:4"), (MAX, "a.py:3"), (SUM, "")]
    members = [Member(place, f"{it} #1 id=x1", site) for place, (it, site) in enumerate(sides)]

    def text(members: list[Member]) -> str:
        return disagreement(Verdict(Ruling.MISMATCH, tuple(members)), mine, "tp", range(4)).failure.message

    assert text(members) == (
        "MISMATCH in all_reduce #1 (x1) on tp\n  rank 0: float32[3] sum at a.py:3\n"
        "  rank 1: float32[3] sum at b.py:4\n  rank 2: float32[3] max at a.py:3\n  rank 3: float32[3] sum"
    )
    assert text([replace(it, site="a.py:3") for it in members]) == (
        "MISMATCH in all_reduce #1 (x1) on tp at a.py:3\n  ranks 0-1, 3: float32[3] sum\n  rank 2:       float32[3] max"
    )


def test_the_headline_alone_says_where_also_when_the_place_is_known() -> None:
    it = failure_at_the_first(Ruling.MISMATCH, [SUM, MAX])
    placed = replace(it, place=Place(rank=0, group="world", operation="all_reduce", operation_id="x1"))
    assert str(placed) == it.message


@pytest.mark.parametrize(
    ("contracts", "ranks", "text"),
    [
        (
            [SUM, MAX, SUM, None],
            [4, 5, 6, 7],
            "MISMATCH in all_reduce #1 (x1) on world\n"
            "  ranks 4, 6: float32[3] sum\n  rank 5:     float32[3] max\n  rank 7:     has not come",
        ),
        (
            [SUM, MAX, SUM],
            [9, 3, 8],
            "MISMATCH in all_reduce #1 (x1) on world\n  ranks 8-9: float32[3] sum\n  rank 3:    float32[3] max",
        ),
        (
            [SUM, "barrier", "scatter dtype=int8 part=[2, 3] src_rank_in_group=0 dim=1"],
            [0, 1, 2],
            "MISMATCH in #1 (x1) on world\n  rank 0: all_reduce float32[3] sum\n  rank 1: barrier\n"
            "  rank 2: scatter int8[2, 3] src_rank_in_group=0 dim=1",
        ),
    ],
    ids=["of a group, one missing", "in another order", "three operations"],
)
def test_sides_are_ranks_in_the_gang(contracts: list[str | None], ranks: list[int], text: str) -> None:
    assert failure_at_the_first(Ruling.MISMATCH, contracts, ranks).message == text


def test_numbers_and_ids_that_differ_stand_with_their_sides() -> None:
    mine = Arrival(0, "x1", "barrier", 10.0)
    members = (Member(0, str(mine)), Member(1, "barrier #2 id=x2"), Member(2, "barrier #1"))
    failure = disagreement(Verdict(Ruling.MISMATCH, members), mine, "tp", [0, 1, 2]).failure
    assert failure.message == (
        "MISMATCH in barrier on tp\n  rank 0: #1 (x1)\n  rank 1: #2 (x2)\n  rank 2: #1\n"
        "  calls that began apart have met: gang calls have one order, whoever makes them"
    )


@pytest.mark.parametrize(
    ("contracts", "help"),
    [
        (
            ["all_gather dtype=float32 shape=[3] dim=0", "all_gather dtype=float32 shape=[4] dim=0"],
            ["  tensors of unequal sizes need `sizes`, or `ragged`"],
        ),
        (["all_gather dtype=float32 shape=[3] dim=0", "all_gather dtype=int32 shape=[3] dim=0"], []),
        (["all_gather dtype=float32 shape=[3] dim=0", "all_gather dtype=float32 shape=[4] dim=1"], []),
        (["all_reduce dtype=float32 shape=[3] op=sum", "all_reduce dtype=float32 shape=[4] op=sum"], []),
        (
            ["scatter dtype=float32 part=[3] dim=0", "scatter dtype=float32 part=[4] dim=0"],
            ["  parts of unequal sizes need `sizes`"],
        ),
    ],
)
def test_unequal_sizes_are_helped_where_something_helps(contracts: list[str | None], help: list[str]) -> None:
    message = failure_at_the_first(Ruling.MISMATCH, contracts, [0, 1]).message
    assert [it for it in message.splitlines() if "unequal sizes" in it] == help


def test_a_thousand_ranks_stay_readable() -> None:
    every_other = failure_at_the_first(Ruling.MISMATCH, [SUM, MAX] * 500).message
    assert every_other.splitlines()[1:] == [
        "  ranks 0, 2, 4, 6, 8, 10, 12, 14 and 492 more: float32[3] sum",
        "  ranks 1, 3, 5, 7, 9, 11, 13, 15 and 492 more: float32[3] max",
    ]
    each = failure_at_the_first(Ruling.MISMATCH, [f"barrier {rank}" for rank in range(1000)]).message
    assert each.splitlines()[-2:] == ["  rank 7: 7", "  and 992 more sides"]


def test_long_sides_are_cut_and_stay_apart() -> None:
    long = "reduce_scatter sizes=" + "1, " * 5000
    text = failure_at_the_first(Ruling.MISMATCH, [f"{long}a", f"{long}b"]).message
    assert len(text.splitlines()) == 3
    assert len(text) < 600


def test_missing_ranks_are_intervals() -> None:
    it = failure_at_the_first(Ruling.PEER_MISSING, [SUM, None, None, None, SUM, None])
    assert str(it) == (
        "PEER_MISSING in all_reduce #1 (x1) on world: 2 of 6 ranks came, missing: ranks 1-3, 5\n"
        "  ranks 0, 4: float32[3] sum"
    )


def test_a_send_and_a_receive_that_differ_are_both_sides() -> None:
    group = Group(GroupDescription("tp", (4, 7)), None)
    post = Post(1, Side.RECV, 0, 5, "tensor", "float32[3]", 1.0)
    match = Match(Ruling.MISMATCH, peer=0, theirs="send of object to rank_in_group 1 tag=5")
    failure = unmatched(match, post, "recv", group, rank_in_group=1).failure
    assert str(failure) == (
        "MISMATCH in recv on tp\n  rank 7: receive of tensor float32[3] from rank_in_group 0 tag=5\n"
        "  rank 4: send of object to rank_in_group 1 tag=5"
    )
    assert [(detail.rank, detail.state) for detail in failure.ranks] == [
        (7, RankState.ARRIVED),
        (4, RankState.DISAGREES),
    ]
