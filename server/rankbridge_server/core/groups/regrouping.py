"""The groups that the next generation makes again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ..coordinator import GroupDescription
from .group import WORLD


@dataclass(frozen=True, slots=True)
class PeerState:
    """A rank before forming. `seen`: the highest generation that it was asked to prepare. `formed`: its last one.

    `rank`: its rank in that one; None: it was in none. `groups`: the groups that it knew.
    """

    seen: int
    formed: int
    rank: int | None
    groups: tuple[GroupDescription, ...]


def regroup(peers: Sequence[PeerState], wanted: Sequence[GroupDescription]) -> list[GroupDescription]:
    """The groups to form beside world for `peers`, which become ranks 0, 1, ...: the old ones, and `wanted`.

    An old group keeps its order. A lost member is replaced by the new rank at its place, if that rank was in no
    generation before, and left out otherwise. A group without members is not made.

    The members of a group decide whether it still exists, because other ranks may not know of its end. Of a group
    whose members are all lost, the other ranks' word counts, so that it is made again if all were replaced.
    """
    latest = max((peer.formed for peer in peers if peer.rank is not None), default=0)
    members = [peer if peer.rank is not None and peer.formed == latest else None for peer in peers]
    places = {peer.rank: place for place, peer in enumerate(members) if peer is not None}
    fresh = {place for place, peer in enumerate(peers) if peer.rank is None}
    known = [(peer.rank, group) for peer in members if peer is not None for group in peer.groups]
    others = {group.name: group for _, group in known if places.keys().isdisjoint(group.ranks)}
    old = others | {group.name: group for rank, group in known if rank in group.ranks}
    new = {group.name: group for group in wanted}
    for name, group in old.items():
        if name == WORLD or name in new:
            continue
        ranks = [places.get(rank, rank if rank in fresh else None) for rank in group.ranks]
        if any(rank is not None for rank in ranks):
            new[name] = GroupDescription(name, tuple(rank for rank in ranks if rank is not None))
    return sorted(new.values(), key=lambda group: group.name)
