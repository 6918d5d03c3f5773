"""The links with the ranks to which a guarded rank sends."""

import pytest

from rankbridge_server.job.guard.outbox import order_of, place_of, rank_at


@pytest.mark.parametrize(
    ("rank", "order"), [(0, (0, 1, 2, 3)), (1, (1, 0, 2, 3)), (2, (2, 0, 1, 3)), (3, (3, 0, 1, 2))]
)
def test_a_rank_leads_its_inbox(rank: int, order: tuple[int, ...]) -> None:
    assert order_of(rank, 4) == order
    assert [place_of(it, rank) for it in order] == [0, 1, 2, 3]
    assert [rank_at(place, rank) for place in range(4)] == list(order)
