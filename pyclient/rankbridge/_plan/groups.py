"""Groups, and what each of their members is in them. Nothing here asks a rank."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from rankbridge.errors import InvalidArgumentError, RankOutOfRangeError


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where a rank runs.

    Attributes:
        host: Name of its host.
        local_rank: Rank on its host.
        fs_local_rank: Rank among those that share its file system. None: not known.
    """

    host: str
    local_rank: int
    fs_local_rank: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """Some ranks of the gang, in order, under a name.

    Attributes:
        name: Unique in the gang.
        ranks: Ranks of the gang in group order: the i-th has rank_in_group i.
        backend: What moves its data: "gloo", "fake".
        generation: Generation in which it was formed.
        rank_in_group: Place of the rank that was asked. None: it is not a member, or no one rank was asked.
        sequence: Operations admitted so far, on the rank that was asked.
        places: Where each member runs, in group order; None of one that could not be asked. Empty: none was
            asked. Groups that differ in this alone are equal.
    """

    name: str
    ranks: tuple[int, ...]
    backend: str = ""
    generation: int = 0
    rank_in_group: int | None = None
    sequence: int = 0
    places: tuple[Place | None, ...] = field(default=(), compare=False)

    def __len__(self) -> int:
        """Number of members."""
        return len(self.ranks)

    def __contains__(self, rank: object) -> bool:
        """Says whether a rank of the gang is a member."""
        return rank in self.ranks

    @property
    def world_size(self) -> int:
        """Number of members."""
        return len(self.ranks)

    @property
    def first_rank(self) -> int:
        """Rank in the gang of the member whose rank_in_group is 0. It need not be the lowest."""
        return self.ranks[0]

    @property
    def last_rank(self) -> int:
        """Rank in the gang of the member whose rank_in_group is the highest. It need not be the highest itself."""
        return self.ranks[-1]

    @property
    def members(self) -> tuple[Member, ...]:
        """Every member, in group order."""
        return tuple(Member(group=self, rank_in_group=place) for place in range(len(self)))

    def member(self, rank: int) -> Member:
        """Gives one member.

        Args:
            rank: Its rank in the gang.

        Raises:
            InvalidArgumentError: It is not a member.
        """
        if rank not in self.ranks:
            raise InvalidArgumentError(
                f"rank {rank} is not a member of group {self.name!r}",
                group=self.name,
                operation="member",
                expected=f"one of ranks {listed(self.ranks)}",
                got=str(rank),
            )
        return Member(group=self, rank_in_group=self.ranks.index(rank))

    def at(self, rank_in_group: int) -> Member:
        """Gives one member by its place.

        Args:
            rank_in_group: Its place, 0 or more.

        Raises:
            RankOutOfRangeError: There is no such place.
        """
        if not 0 <= rank_in_group < len(self):
            raise RankOutOfRangeError(
                f"group {self.name!r} has no rank_in_group {rank_in_group}",
                group=self.name,
                operation="at",
                expected=f"0 to {len(self) - 1}",
                got=str(rank_in_group),
            )
        return Member(group=self, rank_in_group=rank_in_group)

    def by_host(self) -> dict[str, tuple[int, ...]]:
        """Gives the members on each host, in group order; hosts in the order of their first members.

        Raises:
            InvalidArgumentError: The host of some member is not known.
        """
        if not self.places or None in self.places:
            raise InvalidArgumentError(
                f"the hosts of group {self.name!r} are not known",
                group=self.name,
                operation="by_host",
                expected="a group that was asked for by its name, all of whose members answered",
                got=f"places of {sum(place is not None for place in self.places)} of {len(self)} members",
            )
        return by_host(self.ranks, [place.host for place in self.places if place is not None])


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    """One member of a group: what it is there, and who its neighbours are.

    Attributes:
        group: The group.
        rank_in_group: Its place in the group, 0 or more.
    """

    group: Group
    rank_in_group: int

    @property
    def rank(self) -> int:
        """Its rank in the gang."""
        return self.group.ranks[self.rank_in_group]

    @property
    def world_size(self) -> int:
        """Number of members of the group."""
        return len(self.group)

    @property
    def first_rank(self) -> int:
        """Rank in the gang of the group's first member."""
        return self.group.first_rank

    @property
    def last_rank(self) -> int:
        """Rank in the gang of the group's last member."""
        return self.group.last_rank

    @property
    def is_first_rank(self) -> bool:
        """Whether it is the group's first member."""
        return self.rank_in_group == 0

    @property
    def is_last_rank(self) -> bool:
        """Whether it is the group's last member."""
        return self.rank_in_group == len(self.group) - 1

    @property
    def is_master(self) -> bool:
        """Whether it is the group's first member, in optimus-dl's word."""
        return self.is_first_rank

    @property
    def is_local_master(self) -> bool | None:
        """Whether it is the group's first member on its host, in optimus-dl's word. None: not known."""
        if self._place is None:
            return None
        hosts = [None if place is None else place.host for place in self.group.places[: self.rank_in_group]]
        if self._place.host in hosts:
            return False
        return None if None in hosts else True

    @property
    def next_rank(self) -> int:
        """Rank in the gang of the member after it; after the last comes the first."""
        return self.group.ranks[(self.rank_in_group + 1) % len(self.group)]

    @property
    def prev_rank(self) -> int:
        """Rank in the gang of the member before it; before the first comes the last."""
        return self.group.ranks[self.rank_in_group - 1]

    @property
    def host(self) -> str | None:
        """Name of its host. None: not known."""
        return None if self._place is None else self._place.host

    @property
    def local_rank(self) -> int | None:
        """Its rank on its host. None: not known."""
        return None if self._place is None else self._place.local_rank

    @property
    def fs_local_rank(self) -> int | None:
        """Its rank among those that share its file system, as OLMo-core's ``get_fs_local_rank``. None: not known."""
        return None if self._place is None else self._place.fs_local_rank

    @property
    def _place(self) -> Place | None:
        return self.group.places[self.rank_in_group] if self.group.places else None


def by_host(ranks: Iterable[int], hosts: Iterable[str]) -> dict[str, tuple[int, ...]]:
    """Gives the ranks on each host, in their order; hosts in the order of their first ranks.

    Args:
        ranks: Ranks.
        hosts: Host of each.
    """
    found: dict[str, list[int]] = {}
    for rank, host in zip(ranks, hosts, strict=True):
        found.setdefault(host, []).append(rank)
    return {host: tuple(there) for host, there in found.items()}


def check_place(operation: str, name: str, place: int, size: int, group: str) -> None:
    """Checks that a rank in a group is below the group's size.

    Raises:
        RankOutOfRangeError: It is not, or is negative.
    """
    if not 0 <= place < size:
        raise RankOutOfRangeError(
            f"{name} is not in the group",
            group=group,
            operation=operation,
            expected=f"0 to {size - 1}",
            got=str(place),
        )


def listed(ranks: Sequence[int]) -> str:
    """Writes ranks for people: of a thousand, the first eight and the number of the others."""
    shown = ", ".join(map(str, ranks[:8]))
    more = f" and {len(ranks) - 8} more" if len(ranks) > 8 else ""
    return f"[{shown}{more}]"
