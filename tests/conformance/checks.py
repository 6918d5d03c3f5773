"""What must hold of groups on a gang, whatever its backend."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from tests.conformance.gangs import PATIENT

from rankbridge import Gang, Group, Ref

__all__ = ["PATIENT", "assert_groups_work", "floats", "gathered", "own_groups"]


def floats(gang: Gang, refs: Sequence[Ref]) -> list[list[float]]:
    """The elements of each tensor."""
    return [np.asarray(value).tolist() for value in gang.get(refs)]


def gathered(gang: Gang, group: Group) -> list[list[float]]:
    """What each member has when every one brought its rank in the gang, in group order."""
    refs = gang.put([np.full(1, rank, np.float32) for rank in group.ranks], group=group)
    joined = gang.all_gather(refs, group=group)
    values = floats(gang, joined)
    gang.release([*refs, *joined])
    return values


def assert_groups_work(gang: Gang, groups: Sequence[Group]) -> None:
    """Each rank knows its own groups and its place in them, and data goes round in each."""
    for rank in gang:
        known = own_groups(gang, rank.rank)
        for group in groups:
            if rank.rank in group:
                there, member = known[group.name], group.member(rank.rank)
                assert (there.ranks, there.rank_in_group) == (group.ranks, member.rank_in_group)
            else:
                assert group.name not in known
    for group in groups:
        assert gathered(gang, group) == [list(group.ranks)] * len(group)


def own_groups(gang: Gang, rank: int) -> dict[str, Group]:
    """The groups that a rank is a member of, as it tells them itself, by name."""
    return {group.name: group for group in gang[rank].groups() if group.rank_in_group is not None}
