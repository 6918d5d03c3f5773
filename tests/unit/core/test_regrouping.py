"""Which groups the next generation makes again."""

from __future__ import annotations

from rankbridge_server.core.coordinator import GroupDescription
from rankbridge_server.core.regrouping import PeerState, regroup

WORLD = GroupDescription("world", (0, 1, 2, 3))
TP = GroupDescription("tp", (3, 1))
FRESH = PeerState(0, 0, None, ())


def member(rank: int, *groups: GroupDescription, seen: int = 1) -> PeerState:
    return PeerState(seen, seen, rank, (WORLD, *groups))


def test_groups_of_an_unchanged_gang_are_made_again() -> None:
    assert regroup([member(rank, TP) for rank in range(4)], ()) == [TP]


def test_a_replacement_takes_the_place_of_the_lost_member() -> None:
    peers = [member(0, TP), FRESH, member(2, TP), member(3, TP)]
    assert regroup(peers, ()) == [TP]


def test_a_smaller_gang_leaves_lost_members_out_and_renumbers_the_others() -> None:
    peers = [member(0, TP), member(2, TP), member(3, TP)]
    assert regroup(peers, ()) == [GroupDescription("tp", (2,))]


def test_a_group_without_members_is_not_made() -> None:
    assert regroup([member(0, TP), member(2, TP)], ()) == []


def test_new_ranks_at_new_places_join_no_old_group() -> None:
    assert regroup([*(member(rank, TP) for rank in range(4)), FRESH], ()) == [TP]


def test_members_keep_their_order_when_their_ranks_are_reversed() -> None:
    peers = [member(rank, TP) for rank in (3, 2, 1, 0)]
    assert regroup(peers, ()) == [GroupDescription("tp", (0, 2))]


def test_a_wanted_group_takes_the_place_of_an_old_one_of_its_name() -> None:
    wanted = GroupDescription("tp", (0, 2))
    assert regroup([member(rank, TP) for rank in range(4)], [wanted]) == [wanted]


def test_a_rank_of_an_older_generation_is_no_member_of_anything() -> None:
    peers = [member(0, TP, seen=2), member(1, GroupDescription("old", (1,)), seen=1)]
    assert regroup(peers, ()) == []


def test_a_gang_that_never_was_has_the_wanted_groups() -> None:
    assert regroup([FRESH, FRESH], [TP]) == [TP]
