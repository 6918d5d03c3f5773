"""What a group tells of its members, from its description alone."""

from __future__ import annotations

import pytest

from rankbridge import Group, InvalidArgumentError, Place, RankOutOfRangeError


def test_neighbours_go_round_in_group_order_not_in_rank_order() -> None:
    group = Group(name="odd", ranks=(5, 0, 3))
    assert [member.rank for member in group.members] == [5, 0, 3]
    assert [(member.prev_rank, member.next_rank) for member in group.members] == [(3, 0), (5, 3), (0, 5)]
    assert [member.is_first_rank for member in group.members] == [True, False, False]
    assert [member.is_last_rank for member in group.members] == [False, False, True]
    assert {(member.first_rank, member.last_rank, member.world_size) for member in group.members} == {
        (5, 3, 3)
    }
    assert group.member(3) == group.at(2)


def test_a_group_of_one_is_its_own_neighbour() -> None:
    only = Group(name="one", ranks=(4,)).member(4)
    assert (only.rank_in_group, only.next_rank, only.prev_rank) == (0, 4, 4)
    assert only.is_first_rank
    assert only.is_last_rank


def test_who_is_no_member_is_refused_and_the_members_are_named() -> None:
    group = Group(name="pair", ranks=(2, 7))
    assert 7 in group
    assert 0 not in group
    with pytest.raises(InvalidArgumentError, match="rank 0 is not a member of group 'pair'") as caught:
        group.member(0)
    assert (caught.value.expected, caught.value.got) == ("one of ranks [2, 7]", "0")
    for place in (-1, 2):
        with pytest.raises(RankOutOfRangeError, match="0 to 1"):
            group.at(place)


def test_hosts_are_told_as_far_as_they_are_known() -> None:
    places = (Place(host="b", local_rank=1), None, Place(host="a", local_rank=0, fs_local_rank=2))
    group = Group(name="g", ranks=(3, 1, 0), places=places)
    assert [member.fs_local_rank for member in group.members] == [None, None, 2]
    assert [(member.host, member.local_rank) for member in group.members] == [
        ("b", 1),
        (None, None),
        ("a", 0),
    ]
    unasked = Group(name="g", ranks=(3, 1, 0))
    assert unasked.member(3).host is None
    assert unasked == group
    for unknown in (group, unasked):
        with pytest.raises(InvalidArgumentError, match="hosts of group 'g' are not known"):
            unknown.by_host()


def test_members_are_sorted_by_host_in_group_order() -> None:
    places = tuple(Place(host=host, local_rank=0) for host in "baab")
    group = Group(name="g", ranks=(3, 1, 0, 2), places=places)
    assert list(group.by_host().items()) == [("b", (3, 2)), ("a", (1, 0))]


def test_masters_are_the_first_of_the_group_and_of_each_host() -> None:
    places = tuple(Place(host=host, local_rank=0) for host in "baab")
    group = Group(name="g", ranks=(3, 1, 0, 2), places=places)
    assert [it.is_master for it in group.members] == [True, False, False, False]
    assert [it.is_local_master for it in group.members] == [True, True, False, False]
    unknown = Group(name="g", ranks=(3, 1, 0), places=(None, places[1], places[1]))
    assert [it.is_local_master for it in unknown.members] == [None, None, False]
    assert Group(name="g", ranks=(3,)).member(3).is_local_master is None
