"""Role layouts: which ranks train, which keep buffers, which coordinate. Pure: asks no rank.

Two assignments: ``in_blocks`` (trainers first, then buffers, then coordinators; trainers take turns among the
buffers) and ``by_host`` (each buffer beside its own trainers, on their host where the numbers allow it).
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from rankbridge._plan.groups import Group, by_host, listed
from rankbridge.errors import InvalidArgumentError

Role = Literal["trainer", "buffer", "coordinator"]
"""What a rank does in a layout."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """Who does what among the ranks of a gang.

    Its groups are "layout/train" of all trainers, "layout/buffer" of all buffers (if there are any), and
    "layout/agent/i" of the i-th agent group: trainers that average their models together.

    Attributes:
        name: What the names of its groups begin with.
        size: Ranks in the gang.
        trainers: Ranks that train, in the order of the teams.
        buffers: Ranks that keep a buffer, in the order of the teams.
        coordinators: Ranks that coordinate: the last ones.
        teams: The trainers of each buffer. Without buffers: those of each host, or all.
        agent_groups: The trainers of each agent group, equally many in each.
        hosts: Host of each rank. Empty: the layout does not depend on them.
        backend: What moves its groups' data. Empty: they have not been made.
        generation: Generation in which its groups were made. 0: they have not been made.
    """

    name: str
    size: int
    trainers: tuple[int, ...]
    buffers: tuple[int, ...]
    coordinators: tuple[int, ...]
    teams: tuple[tuple[int, ...], ...]
    agent_groups: tuple[tuple[int, ...], ...]
    hosts: tuple[str, ...] = ()
    backend: str = ""
    generation: int = 0

    @classmethod
    def in_blocks(
        cls,
        size: int,
        *,
        buffers: int = 0,
        agent_groups: int = 1,
        coordinators: int = 0,
        name: str = "layout",
    ) -> Layout:
        """Trainers first, then buffers, then coordinators; the i-th trainer uses buffer i modulo their number.

        Args:
            size: Ranks in the gang.
            buffers: How many ranks keep a buffer; at most as many as train.
            agent_groups: How many groups of trainers; divides the number of trainers.
            coordinators: How many ranks coordinate.
            name: What the names of the groups shall begin with.

        Raises:
            InvalidArgumentError: The numbers do not fit.
        """
        _check_numbers(name, size, buffers, agent_groups, coordinators)
        training = size - buffers - coordinators
        if training < max(1, buffers):
            raise _refusal(
                name,
                "too few ranks are left to train",
                f"{max(1, buffers)} or more of {size}",
                f"{training}, with {buffers} buffers and {coordinators} coordinators",
            )
        trainers = tuple(range(training))
        turns = tuple(trainers[first::buffers] for first in range(buffers))
        return cls(
            name=name,
            size=size,
            trainers=trainers,
            buffers=tuple(range(training, training + buffers)),
            coordinators=tuple(range(training + buffers, size)),
            teams=turns or (trainers,),
            agent_groups=_agent_groups(name, trainers, agent_groups),
        )

    @classmethod
    def by_host(
        cls,
        hosts: Iterable[str],
        *,
        buffers: int = 0,
        agent_groups: int = 1,
        coordinators: int = 0,
        name: str = "layout",
    ) -> Layout:
        """Splits each host's ranks evenly into teams: some trainers, and last the buffer that is theirs.

        If the hosts cannot have equally many buffers, all ranks, host by host, are split evenly instead; then
        teams may span hosts, which `warnings` tell. Coordinators are the last ranks of the gang.

        Args:
            hosts: Host of each rank, by rank.
            buffers: How many ranks keep a buffer.
            agent_groups: How many groups of trainers; divides the number of trainers.
            coordinators: How many ranks coordinate.
            name: What the names of the groups shall begin with.

        Raises:
            InvalidArgumentError: The numbers do not fit, or a host has too few ranks for its teams.
        """
        named = tuple(hosts)
        size = len(named)
        _check_numbers(name, size, buffers, agent_groups, coordinators)
        working = range(size - coordinators)
        if not working:
            raise _refusal(name, "no rank is left to train", f"{coordinators + 1} ranks or more", str(size))
        there = by_host(working, named[: len(working)])
        together = buffers % len(there) == 0
        pools = there if together else {"": tuple(rank for ranks in there.values() for rank in ranks)}
        teams, keepers = list[tuple[int, ...]](), list[int]()
        for host, ranks in pools.items():
            count = buffers // len(pools)
            if not count:
                teams.append(ranks)
                continue
            if len(ranks) < 2 * count:
                where = f"host {host!r} has" if together else "there are"
                raise _refusal(
                    name,
                    f"{where} too few ranks for {count} {'teams' if count > 1 else 'team'}",
                    f"{2 * count} or more: a buffer and a trainer at least for each",
                    str(len(ranks)),
                )
            for team in split_evenly(ranks, count):
                teams.append(team[:-1])
                keepers.append(team[-1])
        trainers = tuple(rank for team in teams for rank in team)
        return cls(
            name=name,
            size=size,
            trainers=trainers,
            buffers=tuple(keepers),
            coordinators=tuple(range(len(working), size)),
            teams=tuple(teams),
            agent_groups=_agent_groups(name, trainers, agent_groups),
            hosts=named,
        )

    def __len__(self) -> int:
        """Ranks in the gang."""
        return self.size

    def role(self, rank: int) -> Role:
        """Gives what a rank does.

        Raises:
            InvalidArgumentError: There is no such rank.
        """
        if rank in self.buffers:
            return "buffer"
        if rank in self.coordinators:
            return "coordinator"
        if rank in self.trainers:
            return "trainer"
        raise _refusal(self.name, f"rank {rank} is not in it", f"0 to {self.size - 1}", str(rank))

    def buffer_of(self, rank: int) -> int | None:
        """Gives the buffer that a trainer uses. None: there are none, or the rank is no trainer.

        Raises:
            InvalidArgumentError: There is no such rank.
        """
        if self.role(rank) != "trainer" or not self.buffers:
            return None
        return next(buffer for buffer, team in zip(self.buffers, self.teams, strict=True) if rank in team)

    def trainers_of(self, rank: int) -> tuple[int, ...]:
        """Gives the trainers that use a buffer. Empty: the rank is no buffer.

        Raises:
            InvalidArgumentError: There is no such rank.
        """
        return self.teams[self.buffers.index(rank)] if self.role(rank) == "buffer" else ()

    def agent_group_of(self, rank: int) -> int | None:
        """Gives the number of a trainer's agent group. None: the rank is no trainer.

        Raises:
            InvalidArgumentError: There is no such rank.
        """
        if self.role(rank) != "trainer":
            return None
        return next(number for number, group in enumerate(self.agent_groups) if rank in group)

    @property
    def warnings(self) -> tuple[str, ...]:
        """What goes from host to host that could stay on one: buffers' trainers, then agent groups."""
        if not self.hosts:
            return ()
        warnings: list[str] = []
        for buffer in self.buffers:
            far = [rank for rank in self.trainers_of(buffer) if self.hosts[rank] != self.hosts[buffer]]
            if far:
                warnings.append(
                    f"buffer {buffer} on host {self.hosts[buffer]!r} serves ranks {listed(far)} of other hosts; "
                    "none would, with equally many buffers on each host"
                )
        for number, group in enumerate(self.agent_groups):
            spanned = list(dict.fromkeys(self.hosts[rank] for rank in group))
            if len(spanned) > 1:
                warnings.append(f"agent group {number} spans hosts {', '.join(map(repr, spanned))}")
        return tuple(warnings)

    @property
    def train_group(self) -> Group:
        """The group of all trainers."""
        return self._group("train", self.trainers)

    @property
    def buffer_group(self) -> Group | None:
        """The group of all buffers. None: there are none."""
        return self._group("buffer", self.buffers) if self.buffers else None

    def agent_group(self, number: int) -> Group:
        """Gives the group of one agent group.

        Args:
            number: Its number, as of `agent_group_of`.

        Raises:
            InvalidArgumentError: There is no such agent group.
        """
        if not 0 <= number < len(self.agent_groups):
            raise _refusal(
                self.name, "there is no such agent group", f"0 to {len(self.agent_groups) - 1}", str(number)
            )
        return self._group(f"agent/{number}", self.agent_groups[number])

    def groups(self) -> list[Group]:
        """Gives every group of the layout."""
        agents = [self.agent_group(number) for number in range(len(self.agent_groups))]
        return [group for group in (self.train_group, self.buffer_group, *agents) if group is not None]

    def _group(self, part: str, ranks: tuple[int, ...]) -> Group:
        return Group(
            name=f"{self.name}/{part}", ranks=ranks, backend=self.backend, generation=self.generation
        )


def split_evenly(ranks: Sequence[int], parts: int) -> list[tuple[int, ...]]:
    """Cuts ranks into parts whose sizes differ by one at most, the larger ones first."""
    least, longer = divmod(len(ranks), parts)
    ends = [least * part + min(part, longer) for part in range(parts + 1)]
    return [tuple(ranks[start:end]) for start, end in itertools.pairwise(ends)]


def _agent_groups(name: str, trainers: tuple[int, ...], number: int) -> tuple[tuple[int, ...], ...]:
    if len(trainers) % number:
        raise _refusal(
            name,
            "the trainers cannot be split into equal agent groups",
            f"a multiple of {number} trainers",
            str(len(trainers)),
        )
    return tuple(split_evenly(trainers, number))


def _check_numbers(name: str, size: int, buffers: int, agent_groups: int, coordinators: int) -> None:
    if not name or size < 1 or buffers < 0 or agent_groups < 1 or coordinators < 0:
        raise _refusal(
            name,
            "bad numbers",
            "a name, 1 rank or more, 0 buffers or more, 1 agent group or more, 0 coordinators or more",
            f"{size} ranks, {buffers} buffers, {agent_groups} agent groups, {coordinators} coordinators",
        )


def _refusal(name: str, message: str, expected: str, got: str) -> InvalidArgumentError:
    return InvalidArgumentError(
        f"layout {name!r}: {message}", phase="check", operation="layout", expected=expected, got=got
    )
