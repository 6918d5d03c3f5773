"""The operations that make and destroy groups."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from .. import guests
from ..coordinator import Coordinator, GroupDescription, Joining
from ..errors import BridgeError, ErrorCode, Phase, RankDetail, check_rank, failed_ranks, invalid
from ..operations.operation import Entry, Plan, SimplePlan, Site, operation
from ..refs.refs import MAX_ID_BYTES
from .group import WORLD, Group, GroupView, Membership

_TAKEN = b"!"
_ADDRESS = b"@"


@dataclass(frozen=True, slots=True)
class NewGroup:
    """Makes a group. `ranks`: in the gang, in group order."""

    name: str
    ranks: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class DestroyGroup:
    """Ends the group in which it is called."""


def check_description(description: GroupDescription, world_size: int) -> None:
    """Raises INVALID_ARGUMENT or RANK_OUT_OF_RANGE unless the gang can form such a group."""
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
        check_rank(f"group {name!r} names a rank outside the gang", rank, world_size)


@operation()
def new_group(site: Site, args: NewGroup) -> Plan:
    """Checks that the group can be made here."""
    description = GroupDescription(args.name, args.ranks)
    check_description(description, site.generation.world_size)
    if args.name == WORLD:
        raise _taken(args.name)
    outsiders = sorted(set(args.ranks) - set(site.group.description.ranks))
    if outsiders:
        raise invalid(
            f"group {args.name!r} names ranks outside the group that makes it",
            expected=f"some of {list(site.group.description.ranks)}",
            got=str(outsiders),
        )
    if guest := guests.home_of(site.session_id):
        held = site.generation.groups_of(guest)
        guests.check_share(guest, "groups", held, 1, guests.MAX_GROUPS)
    return _NewGroupPlan(site, description)


@operation()
def destroy_group(site: Site, args: DestroyGroup) -> Plan:
    """Checks that the group can be destroyed."""
    if site.group.name == WORLD:
        raise invalid("group 'world' ends with its generation", expected="another group", got=repr(WORLD))

    def remove() -> GroupView:
        view = site.group.view(site.backend.name, site.generation.number)
        site.generation.remove(site.group.name)
        return view

    # The agreement of all members is enough.
    return SimplePlan("", lambda entry: remove)


def _taken(name: str, phase: Phase = Phase.UNSPECIFIED, ranks: tuple[RankDetail, ...] = ()) -> BridgeError:
    message = f"there is a group {name!r} already: end it, take another name, or ask for it with exist_ok"
    return BridgeError.of(ErrorCode.GROUP_EXISTS, message, phase=phase, ranks=ranks)


class _NewGroupPlan:
    """Forms a group in two rounds: members exchange addresses and connect, then all agree that all are connected.

    A rank that knows that the name is taken says so in the first round, and all refuse. A rank outside the old group
    cannot know by itself whether that group still exists.
    """

    def __init__(self, site: Site, description: GroupDescription) -> None:
        self._site = site
        self._description = description
        self._joining: Joining | None = None
        self._coordinator: Coordinator | None = None
        self._linked = False
        self.terms = f"name={description.name} ranks={list(description.ranks)}"

    def payload(self) -> bytes:
        """The mark that the name is taken; or this rank's address, if it will be a member."""
        if self._is_taken():
            return _TAKEN
        if self._site.generation.rank not in self._description.ranks:
            return b""
        rank_in_group = self._description.ranks.index(self._site.generation.rank)
        self._joining = self._site.backend.join(
            self._description, rank_in_group, self._site.generation.number
        )
        return _ADDRESS + self._joining.address

    def run(self, entry: Entry) -> Callable[[], GroupView]:
        """Connects, and agrees that all are connected. Raises GROUP_EXISTS on every rank when the name is taken."""
        ranks = self._site.group.description.ranks
        refusals = ["the name is taken" if payload == _TAKEN else "" for payload in entry.payloads]
        if refused := failed_ranks(ranks, refusals):
            raise _taken(self._description.name, Phase.ADMISSION, refused)
        trouble = self._connect(entry)
        reports = entry.agree(f"new_group connected {self.terms}", trouble.encode())
        if failed := failed_ranks(ranks, [report.decode() for report in reports]):
            raise BridgeError.of(
                ErrorCode.FORMING_FAILED,
                f"group {self._description.name!r} could not be formed",
                phase=Phase.FORMING,
                ranks=failed,
            )
        return self._install

    def abandon(self) -> None:
        if self._joining is not None:
            self._joining.abandon()
        if self._linked:
            self._site.generation.links.remove_group(self._description.name)
        if self._coordinator is not None:
            self._coordinator.close()

    def _is_taken(self) -> bool:
        known = self._site.generation.get(self._description.name)
        if known is None or known.membership is not None:
            return known is not None
        # A member of the old group knows better, if one of them takes part.
        return set(known.description.ranks).isdisjoint(self._site.group.description.ranks)

    def _connect(self, entry: Entry) -> str:
        if self._joining is None:
            return ""
        name, ranks = self._description.name, self._description.ranks
        makers = self._site.group.description.ranks
        addresses = [entry.payloads[makers.index(rank)].removeprefix(_ADDRESS) for rank in ranks]
        try:
            self._site.generation.links.add_group(name, ranks, entry.timeout)
            self._linked = True
            self._coordinator = self._joining.connect(addresses, entry.timeout)
        except (BridgeError, OSError) as error:
            return str(error) or type(error).__name__
        self._joining = None
        return ""

    def _install(self) -> GroupView:
        membership = None
        if self._coordinator is not None:
            name, ranks = self._description.name, self._description.ranks
            membership = Membership(name, ranks.index(self._site.generation.rank), self._coordinator)
        group = Group(self._description, membership, guests.home_of(self._site.session_id))
        self._coordinator = None
        self._site.generation.install(group)
        self._linked = False
        return group.view(self._site.backend.name, self._site.generation.number)
