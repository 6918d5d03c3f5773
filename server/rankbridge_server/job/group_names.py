"""Names for a job's groups, which every rank knows only as far as it belongs to them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ..core.coordinator import GroupDescription
from ..core.groups.group import WORLD
from ..core.limits import MAX_GROUPS
from ..core.refs.refs import MAX_ID_BYTES


@dataclass(frozen=True, slots=True)
class FoundGroup:
    """A group as one of its members knows it.

    `key`: the job's own id of it, equal on all members. `name`: a name that somebody gave it, which groups of other
    ranks may have as well; empty: none. `ranks`: in the job, in group order.
    """

    key: str
    name: str
    ranks: tuple[int, ...]


def complete(found: Sequence[Sequence[FoundGroup]]) -> list[FoundGroup]:
    """The groups that all their members have found. `found`: by rank."""
    by_rank = [set(it) for it in found]
    all_of_them = sorted(
        {group for groups in found for group in groups}, key=lambda it: (it.name, it.ranks, it.key)
    )
    return [it for it in all_of_them if all(rank < len(found) and it in by_rank[rank] for rank in it.ranks)]


def named(
    groups: Sequence[FoundGroup], world_size: int, known: Mapping[str, tuple[int, ...]]
) -> list[GroupDescription]:
    """Descriptions of the groups that are not among `known`, ranks by name, in the order of their names.

    A name is its groups' if only one has it, else each is NAME/0, NAME/1, ... in the order of their ranks. Groups of
    one name and the same ranks are one. One without a name is group_KEY. All ranks in order are "world".
    """
    wanted: dict[str, list[tuple[int, ...]]] = {}
    everybody = tuple(range(world_size))
    named_ranks = {it.ranks for it in groups if it.name}
    for group in groups:
        if group.name == WORLD or (not group.name and group.ranks in named_ranks | {everybody}):
            continue
        name = group.name or f"group_{group.key}"
        if group.ranks not in (members := wanted.setdefault(_cut(name), [])):
            members.append(group.ranks)
    made: dict[str, tuple[int, ...]] = {}
    for name, members in sorted(wanted.items()):
        have = {ranks for it, ranks in known.items() if it == name or it.startswith(f"{name}/")}
        new = sorted(set(members) - have)
        if len(new) == 1 and not have and name not in known:
            made[name] = new[0]
            continue
        number = 0
        for ranks in new:
            while f"{name}/{number}" in known or f"{name}/{number}" in made:
                number += 1
            made[f"{name}/{number}"] = ranks
    free = max(0, MAX_GROUPS - len(known) - 1)
    return [GroupDescription(name, ranks) for name, ranks in sorted(made.items())[:free]]


def _cut(name: str) -> str:
    """A name that is short enough, with the number of one of its groups."""
    return name.encode()[: MAX_ID_BYTES - 8].decode(errors="ignore")
