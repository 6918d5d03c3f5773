"""Points inside functions, in words."""

from __future__ import annotations

import pytest

from rankbridge.harness.points import TORCH_CALLS, point_of
from rankbridge_server.job.watch.ring import LATER_TORCH_KINDS, TORCH_KINDS


def test_the_collectives_are_those_that_ranks_see() -> None:
    assert set(TORCH_CALLS) == {*TORCH_KINDS, *LATER_TORCH_KINDS}


@pytest.mark.parametrize(
    ("text", "number", "call", "group", "rank"),
    [
        ("first barrier", 1, "barrier", "", None),
        ("third all_reduce of group dp", 3, "all_reduce", "dp", None),
        ("21st all_gather_into_tensor of group tp-0 on rank 12", 21, "all_gather_into_tensor", "tp-0", 12),
        ("tenth reduce on rank 0", 10, "reduce", "", 0),
    ],
)
def test_a_point_is_read(text: str, number: int, call: str, group: str, rank: int | None) -> None:
    point = point_of(text)
    assert point is not None
    assert (point.number, point.call, point.group, point.rank) == (number, call, group, rank)


@pytest.mark.parametrize(
    "text", ["", "waiting", "0th barrier", "eleventh barrier", "first barrier of dp", "first barrier\n"]
)
def test_what_is_no_point_is_none(text: str) -> None:
    assert point_of(text) is None
