"""The operations that make and end groups."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from .coordinator import Coordinator, GroupDescription, Joining
from .errors import BridgeError, ErrorCode, Phase, RankDetail, RankState, invalid
from .group import WORLD, Group, GroupView, Membership
from .operation import Entry, Plan, Site
from .refs import MAX_ID_BYTES


@dataclass(frozen=True, slots=True)
class NewGroup:
    """Make a group of some ranks of the gang, in group order."""

    name: str
    ranks: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class DestroyGroup:
    """End the group in which it is called."""


def check_description(description: GroupDescription, world_size: int) -> None:
    """Raise INVALID_ARGUMENT or RANK_OUT_OF_RANGE unless such a group can be formed in the gang."""
    name, ranks = description.name, description.ranks
    if not 0 < len(name.encode()) <= MAX_ID_BYTES:
        raise invalid(
            "bad group name", expected=f"1 to {MAX_ID_BYTES} bytes", got=f"{len(name.encode())} bytes"
        )
    if not ranks:
        raise invalid(f"group {name!r} has no ranks", expected="1 rank or more", got="0")
    if len(set(ranks)) != len(ranks):
        raise invalid(f"group {name!r} names a rank twice", expected="each rank once", got=str(list(ranks)))
    for rank in ranks:
        if not 0 <= rank < world_size:
            raise BridgeError.of(
                ErrorCode.RANK_OUT_OF_RANGE,
                f"group {name!r} names a rank outside the gang",
                expected=f"0 to {world_size - 1}",
                got=str(rank),
            )


def plan_new_group(site: Site, args: NewGroup) -> Plan:
    """Check that the group can be made here."""
    description = GroupDescription(args.name, args.ranks)
    check_description(description, site.world_size)
    if site.groups.get(args.name) is not None:
        raise BridgeError.of(ErrorCode.GROUP_EXISTS, f"there is a group {args.name!r} already")
    outsiders = sorted(set(args.ranks) - set(site.group.description.ranks))
    if outsiders:
        raise invalid(
            f"group {args.name!r} names ranks outside the group that makes it",
            expected=f"some of {list(site.group.description.ranks)}",
            got=str(outsiders),
        )
    return _NewGroupPlan(site, description)


def plan_destroy_group(site: Site, args: DestroyGroup) -> Plan:
    """Check that the group can be ended."""
    if site.group.name == WORLD:
        raise invalid("group 'world' ends with its generation", expected="another group", got=repr(WORLD))
    return _DestroyGroupPlan(site)


class _NewGroupPlan:
    """Two rounds: all give their addresses with their arrival and connect, then all say whether they could."""

    def __init__(self, site: Site, description: GroupDescription) -> None:
        self._site = site
        self._description = description
        self._joining: Joining | None = None
        self.terms = f"name={description.name} ranks={list(description.ranks)}"

    def payload(self) -> bytes:
        """This rank's address, where it will be a member."""
        if self._site.rank not in self._description.ranks:
            return b""
        rank_in_group = self._description.ranks.index(self._site.rank)
        self._joining = self._site.backend.join(self._description, rank_in_group, self._site.generation)
        return self._joining.address

    def run(self, entry: Entry) -> GroupView:
        """Connect, agree that all are connected, and install the group."""
        coordinator, trouble = self._connect(entry)
        try:
            reports = entry.agree(f"new_group connected {self.terms}", trouble.encode())
            failed = self._failures(reports)
            if failed:
                raise BridgeError.of(
                    ErrorCode.FORMING_FAILED,
                    f"group {self._description.name!r} could not be formed",
                    phase=Phase.FORMING,
                    ranks=failed,
                )
        except BridgeError:
            self._undo(coordinator)
            raise
        group = Group(self._description, self._membership(coordinator))
        self._site.groups.install(group)
        return group.view(self._site.backend.name, self._site.generation)

    def abandon(self) -> None:
        """Let go of an address that nobody connected to."""
        if self._joining is not None:
            self._joining.abandon()

    def _connect(self, entry: Entry) -> tuple[Coordinator | None, str]:
        joining, self._joining = self._joining, None
        if joining is None:
            return None, ""
        name, ranks = self._description.name, self._description.ranks
        addresses = [entry.payloads[self._site.group.description.ranks.index(rank)] for rank in ranks]
        try:
            self._site.groups.link(name, ranks, entry.timeout)
            return joining.connect(addresses, entry.timeout), ""
        except (BridgeError, OSError) as error:
            joining.abandon()
            return None, str(error)

    def _failures(self, reports: Sequence[bytes]) -> tuple[RankDetail, ...]:
        ranks = self._site.group.description.ranks
        return tuple(
            RankDetail(rank=ranks[place], rank_in_group=place, state=RankState.FAILED, detail=report.decode())
            for place, report in enumerate(reports)
            if report
        )

    def _undo(self, coordinator: Coordinator | None) -> None:
        self._site.groups.unlink(self._description.name)
        if coordinator is not None:
            coordinator.close()

    def _membership(self, coordinator: Coordinator | None) -> Membership | None:
        if coordinator is None:
            return None
        name, ranks = self._description.name, self._description.ranks
        return Membership(name, ranks.index(self._site.rank), coordinator)


class _DestroyGroupPlan:
    """All members agree, then each forgets the group."""

    terms = ""

    def __init__(self, site: Site) -> None:
        self._site = site

    def payload(self) -> bytes:
        """Nothing."""
        return b""

    def run(self, entry: Entry) -> GroupView:
        """Forget the group."""
        view = self._site.group.view(self._site.backend.name, self._site.generation)
        self._site.groups.remove(self._site.group.name)
        return view

    def abandon(self) -> None:
        """Nothing was set aside."""
