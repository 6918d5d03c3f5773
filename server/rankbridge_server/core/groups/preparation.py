"""A generation between prepare and commit: it has addresses, and no connections yet."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ..coordinator import Backend, GroupDescription, Joining
from ..errors import BridgeError, ErrorCode, Phase, Place, check_rank, invalid
from ..events import EventLog
from ..gang_calls.messages import GangMessage
from ..generation import Generation
from ..hold.holds import Holds
from ..limits import MAX_GROUPS, MAX_WORLD_SIZE
from ..links import Ended, LinkMaker, Links
from .group import WORLD, Group, Membership
from .operations import check_description


@dataclass(frozen=True, slots=True)
class RankAddress:
    """One rank's addresses: of its links, and of the backend by group."""

    rank: int
    link: str
    groups: dict[str, bytes]


class Preparation:
    """One rank's half-formed generation. Connect it or abandon it, once."""

    def __init__(
        self, number: int, rank: int, world_size: int, groups: Sequence[GroupDescription], backend: Backend
    ) -> None:
        """Raises INVALID_ARGUMENT or RANK_OUT_OF_RANGE for a gang that is not possible."""
        if world_size > MAX_WORLD_SIZE:
            raise invalid("the gang is too large", expected=f"at most {MAX_WORLD_SIZE}", got=str(world_size))
        if len(groups) > MAX_GROUPS:
            raise invalid("too many groups", expected=f"at most {MAX_GROUPS}", got=str(len(groups)))
        try:
            check_rank("rank is not in the gang", rank, world_size)
        except BridgeError as error:
            raise error.at(Place(rank=rank, generation=number), Phase.FORMING) from None
        self.number = number
        self.rank = rank
        self.world_size = world_size
        self._backend = backend
        self._groups = [GroupDescription(WORLD, tuple(range(world_size))), *groups]
        if len({group.name for group in self._groups}) != len(self._groups):
            raise invalid("two groups have one name", got=str([group.name for group in self._groups]))
        for group in self._groups:
            check_description(group, world_size)
        self._joining: dict[str, Joining] = {}
        self._links: Links | None = None

    def begin(self, make_links: LinkMaker) -> RankAddress:
        """Listens, and makes an address for every group of this rank. Raises FORMING_FAILED."""
        try:
            self._links = make_links(self.number, self.rank)
            for group in self._groups:
                if self.rank in group.ranks:
                    rank_in_group = group.ranks.index(self.rank)
                    self._joining[group.name] = self._backend.join(group, rank_in_group, self.number)
        except Exception as error:
            self.abandon()
            raise self._failed(error) from error
        blobs = {name: joining.address for name, joining in self._joining.items()}
        return RankAddress(self.rank, self._links.address, blobs)

    def connect(
        self,
        addresses: Sequence[RankAddress],
        secret: bytes,
        timeout: float,
        *,
        data_timeout: float,
        lost: Callable[[], object],
        events: EventLog,
        script: Callable[[], str],
        holds: Holds,
        on_message: Callable[[Generation, GangMessage], None],
    ) -> Generation:
        """Connects all groups and verifies them. `timeout`: seconds for everything. Raises FORMING_FAILED."""
        links, deadline = self._links, time.monotonic() + timeout
        if links is None:
            raise RuntimeError("begin was not called")
        if [address.rank for address in addresses] != list(range(self.world_size)):
            self.abandon()
            got = [address.rank for address in addresses]
            raise self._failed(invalid("addresses must be of all ranks, in order", got=str(got)))
        generation = Generation(
            self.number,
            self.rank,
            self.world_size,
            self._backend,
            links,
            data_timeout,
            lost,
            events,
            script,
            holds,
        )
        try:
            links.start(
                {address.rank: address.link for address in addresses},
                secret,
                generation.lost,
                lambda message: on_message(generation, message),
                generation.add_notice,
                generation.activity,
            )
            for group in self._groups:
                membership = None
                if group.name in self._joining:
                    links.add_group(group.name, group.ranks, max(0.001, deadline - time.monotonic()))
                    membership = self._membership(group, addresses, deadline)
                generation.install(Group(group, membership))
        except Exception as error:
            ended = Ended(self.rank, False, f"forming failed: {error}")
            generation.end(BridgeError.of(ErrorCode.FORMING_FAILED, ended.reason), ended)
            self.abandon()
            raise self._failed(error) from error
        return generation

    def abandon(self) -> None:
        """Releases everything."""
        for joining in self._joining.values():
            joining.abandon()
        self._joining.clear()
        if self._links is not None:
            self._links.end(Ended(self.rank, False, f"forming of generation {self.number} was given up"))
            self._links = None

    def _membership(
        self, group: GroupDescription, addresses: Sequence[RankAddress], deadline: float
    ) -> Membership:
        try:
            blobs = [addresses[rank].groups[group.name] for rank in group.ranks]
        except KeyError as missing:
            raise invalid(f"an address for group {missing} is missing") from None
        joining = self._joining.pop(group.name)
        coordinator = joining.connect(blobs, max(0.001, deadline - time.monotonic()))
        try:
            # Verifies the new group before any caller uses it.
            coordinator.barrier(max(0.001, deadline - time.monotonic()))
        except BaseException:
            coordinator.close()
            raise
        return Membership(group.name, group.ranks.index(self.rank), coordinator)

    def _failed(self, error: Exception) -> BridgeError:
        return BridgeError.of(
            ErrorCode.FORMING_FAILED,
            f"generation {self.number} could not be formed: {str(error) or type(error).__name__}",
            phase=Phase.FORMING,
        ).at(Place(rank=self.rank, generation=self.number))
