"""A formed group, as one rank sees it."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from .. import engine_threads
from ..coordinator import Coordinator, GroupDescription
from ..errors import BridgeError
from ..lane import Courier, Lane
from ..programs.captures import Captures
from ..queues.table import QueueTable

if TYPE_CHECKING:
    from ..functions.run import Run

WORLD = "world"


@dataclass(frozen=True, slots=True)
class GroupView:
    """A group as controllers see it. `rank_in_group` is None on a rank that is not a member."""

    name: str
    ranks: tuple[int, ...]
    rank_in_group: int | None
    backend: str
    generation: int
    sequence: int


class Membership:
    """A rank's state as member of a group: coordinator, lane, courier, queues, captures. `sequence`: GO verdicts.

    `functions`: a thread for the calls of functions, one after another. `runs`: those that have not ended, by id.
    """

    def __init__(self, name: str, rank_in_group: int, coordinator: Coordinator) -> None:
        self.rank_in_group = rank_in_group
        self.coordinator = coordinator
        self.lane = Lane(name)
        self.courier = Courier(f"{name}:courier")
        self.functions = Courier(f"{name}:functions")
        self.runs: dict[str, Run] = {}
        self.queues = QueueTable()
        self.captures = Captures()
        self.sequence = 0
        self._posts = itertools.count(1)

    def forget_run(self, run_id: str) -> None:
        """Forgets a call of a function that has been answered. Thread-safe."""
        self.runs.pop(run_id, None)

    def next_post(self) -> int:
        """A number for a post, unique among this rank's posts in the group. Thread-safe."""
        return next(self._posts)


@dataclass(frozen=True, slots=True)
class Group:
    """A group of a generation; `membership` is None on a rank that does not belong to it.

    `guest`: home of the guest that has made it; empty: the owner has.
    """

    description: GroupDescription
    membership: Membership | None
    guest: str = ""

    @property
    def name(self) -> str:
        """Name, unique in the gang."""
        return self.description.name

    def view(self, backend: str, generation: int) -> GroupView:
        """The group as controllers see it."""
        return GroupView(
            name=self.name,
            ranks=self.description.ranks,
            rank_in_group=self.membership.rank_in_group if self.membership else None,
            backend=backend,
            generation=generation,
            sequence=self.membership.sequence if self.membership else 0,
        )


def close_groups(groups: Sequence[Group], error: BridgeError) -> None:
    """Closes queues and lanes at once, and then, in the background, coordinators, which may block.

    Args:
        groups: Groups that no call can reach any more.
        error: The error of calls that wait at a queue.
    """
    members = [group.membership for group in groups if group.membership is not None]
    for member in members:
        member.lane.close()
        _close_beside(member, error)
    if members:
        engine_threads.start("closing", lambda: _close_coordinators(members))


def _close_coordinators(members: Sequence[Membership]) -> None:
    for member in members:
        member.coordinator.close()


def close_when_idle(group: Group, error: BridgeError, patience: float) -> None:
    """Closes queues at once, and all else when the lane has done its jobs, by its own thread.

    Args:
        group: A group that no call can reach any more.
        error: The error of calls that wait at a queue.
        patience: Seconds for the courier to finish.
    """
    member = group.membership
    if member is None:
        return

    def close() -> None:
        member.courier.join(patience)
        member.coordinator.close()

    _close_beside(member, error)
    member.lane.add(close)
    member.lane.close()


def _close_beside(member: Membership, error: BridgeError) -> None:
    member.queues.close(error)
    member.courier.close()
    member.functions.close()
