"""The texts of what a leader's verdicts mean to people."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from rankbridge_server.core.admission.admission import Arrival, Member, Ruling, Verdict
from rankbridge_server.core.admission.verdicts import disagreement
from rankbridge_server.core.errors import ErrorCode, Failure, RankState

SUM, MAX = "all_reduce dtype=float32 shape=[3] op=sum", "all_reduce dtype=float32 shape=[3] op=max"


def failure_at_the_first(
    ruling: Ruling, contracts: Sequence[str | None], ranks: Sequence[int] = ()
) -> Failure:
    """What the first member gets; a contract of None: that member has not come."""
    arrivals = [None if it is None else Arrival(1, "x1", it, 10.0) for it in contracts]
    members = tuple(Member(place, None if it is None else str(it)) for place, it in enumerate(arrivals))
    assert arrivals[0] is not None
    return disagreement(Verdict(ruling, members), arrivals[0], ranks or range(len(contracts))).failure


def test_a_mismatch_names_each_side_once_and_leaves_what_they_asked_for_to_its_fields() -> None:
    it = failure_at_the_first(Ruling.MISMATCH, [SUM, SUM, SUM, MAX])
    assert it.code is ErrorCode.MISMATCH
    assert it.message == "the members asked for different things: ranks 0-2 against rank 3"
    assert (it.expected, it.got) == (f"{SUM} #1 id=x1", f"{MAX} #1 id=x1")
    assert [detail.state for detail in it.ranks] == [RankState.ARRIVED] * 3 + [RankState.DISAGREES]


@pytest.mark.parametrize(
    ("contracts", "ranks", "sides"),
    [
        ([SUM, MAX, SUM, None], [4, 5, 6, 7], "ranks 4, 6 against rank 5"),
        ([SUM, MAX, SUM], [9, 3, 8], "ranks 8-9 against rank 3"),
        ([SUM, MAX, "barrier"], [0, 1, 2], "rank 0 against rank 1 against rank 2"),
    ],
    ids=["of a group, one missing", "in another order", "three sides"],
)
def test_sides_are_ranks_in_the_gang_of_those_who_came(
    contracts: list[str | None], ranks: list[int], sides: str
) -> None:
    it = failure_at_the_first(Ruling.MISMATCH, contracts, ranks)
    assert it.message == f"the members asked for different things: {sides}"


def test_a_thousand_ranks_stay_readable() -> None:
    every_other = failure_at_the_first(Ruling.MISMATCH, [SUM, MAX] * 500).message
    assert every_other.endswith(
        "ranks 0, 2, 4, 6, 8, 10, 12, 14 and 492 more against ranks 1, 3, 5, 7, 9, 11, 13, 15 and 492 more"
    )
    each = failure_at_the_first(Ruling.MISMATCH, [f"barrier {rank}" for rank in range(1000)]).message
    assert each.endswith("against rank 7 and 992 more sides")


def test_missing_ranks_are_intervals() -> None:
    it = failure_at_the_first(Ruling.PEER_MISSING, [SUM, None, None, None, SUM, None])
    assert it.message == "2 of 6 ranks came, missing: ranks 1-3, 5"
