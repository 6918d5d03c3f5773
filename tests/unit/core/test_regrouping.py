"""Which groups the next generation makes again."""

from __future__ import annotations

from rankbridge_server.core.coordinator import GroupDescription
from rankbridge_server.core.groups.regrouping import PeerState, regroup

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


def test_a_group_that_its_members_have_ended_is_not_made_again() -> None:
    assert regroup([member(0, TP), member(1), member(2, TP), member(3)], ()) == []


def test_one_member_that_is_left_tells_that_a_group_has_ended() -> None:
    assert regroup([member(0, TP), FRESH, member(2, TP), member(3)], ()) == []
    assert regroup([member(0, TP), member(2, TP), member(3)], ()) == []


def test_others_tell_of_a_group_whose_every_member_was_replaced() -> None:
    assert regroup([member(0, TP), FRESH, member(2, TP), FRESH], ()) == [TP]


def test_its_members_know_better_than_others_what_a_group_is() -> None:
    now, before = GroupDescription("tp", (0, 1)), GroupDescription("tp", (3, 1))
    peers = [member(0, now), member(1, now), member(2, before), member(3)]
    assert regroup(peers, ()) == [now]
    assert regroup([*reversed(peers)], ()) == [GroupDescription("tp", (3, 2))]


def test_its_members_know_better_than_others_though_those_of_another_are_gone() -> None:
    now, before = GroupDescription("tp", (0, 1)), GroupDescription("tp", (3,))
    assert regroup([member(2, before), member(0, now), member(1, now)], ()) == [
        GroupDescription("tp", (1, 2))
    ]
