"""Taking turns: members of a group that do something a few at a time, as OLMo-core's ``do_n_at_a_time``."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Generic, TypeVar

from rankbridge._plan import operations as ops
from rankbridge._plan.gang_core import GangCore, all_values
from rankbridge._plan.groups import Group, by_host
from rankbridge._plan.procedures import Procedure, members_of
from rankbridge.errors import Outcome, RankBridgeError, gang_error

RankT = TypeVar("RankT")


class Turn(Generic[RankT]):
    """One rank's turn: ``with turn as rank: ...``.

    An exception inside is kept, and raised after the last round, so that the others have their turns all the same.

    Attributes:
        rank: The rank, to be used.
        rank_in_group: Its place in the group.
        error: What failed in the turn. None: nothing so far.
    """

    def __init__(self, rank: RankT, rank_in_group: int) -> None:
        """Made by ``do_n_at_a_time``."""
        self.rank = rank
        self.rank_in_group = rank_in_group
        self.error: Exception | None = None

    def __enter__(self) -> RankT:
        """Gives the rank."""
        return self.rank

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool:
        """Keeps what failed. What interrupts the program is not kept."""
        if isinstance(error, Exception):
            self.error = error
        return isinstance(error, Exception)


@dataclass(frozen=True, slots=True, kw_only=True)
class Round(Generic[RankT]):
    """Those whose turn it is at the same time; gives each one's turn when iterated.

    Attributes:
        number: Which round it is, from 0.
        count: How many there are.
        ranks: Ranks in the gang, in group order.
        turns: Their turns.
    """

    number: int
    count: int
    ranks: tuple[int, ...]
    turns: tuple[Turn[RankT], ...] = field(repr=False)

    def __iter__(self) -> Iterator[Turn[RankT]]:
        """Gives each turn, in group order."""
        return iter(self.turns)

    def __len__(self) -> int:
        """Number of turns."""
        return len(self.turns)


def rounds_of(members: int, n: int) -> list[tuple[int, ...]]:
    """Gives whose turn it is in each round, in OLMo-core's order: with r rounds, that of each r-th member.

    Args:
        members: How many there are.
        n: How many have their turn at once, at most; 1 or more.

    Returns:
        For each round, places in the group in order: of 8 members, 3 at a time, (0, 3, 6), (1, 4, 7) and (2, 5).
    """
    count = -(-members // n)
    return [tuple(range(first, members, count)) for first in range(count)]


def rounds_on_hosts(hosts: Sequence[str]) -> list[tuple[int, ...]]:
    """Gives whose turn it is in each round, if it is one rank's on each host: first everybody's first, and so on.

    Args:
        hosts: Host of each member, in group order.

    Returns:
        For each round, places in the group in order.
    """
    there = by_host(range(len(hosts)), hosts).values()
    longest = max(map(len, there), default=0)
    return [tuple(sorted(own[turn] for own in there if turn < len(own))) for turn in range(longest)]


def taking_turns(
    gang: GangCore[Any], n: int | None, group: str | Group, rank_of: Callable[[int], RankT]
) -> Procedure[list[Round[RankT]]]:
    """Plans the rounds of a group's members; asks them for their hosts, if these decide."""
    members = yield from members_of(gang, group)
    if n is None:
        statuses = all_values((yield list(gang._on(members, ops.status))))
        rounds = rounds_on_hosts([status.host for status in statuses])
    else:
        rounds = rounds_of(len(members), n)
    return [
        Round(
            number=number,
            count=len(rounds),
            ranks=tuple(members[place] for place in places),
            turns=tuple(Turn(rank_of(members[place]), place) for place in places),
        )
        for number, places in enumerate(rounds)
    ]


def note(error: BaseException, rounds: Sequence[Round[Any]]) -> None:
    """Tells with an error, which ends the rounds, of the turns that had failed before."""
    for rank, failed in _failed(rounds):
        error.add_note(f"In the turn of rank {rank}: {type(failed).__name__}: {failed}")


def failure(rounds: Sequence[Round[Any]]) -> Exception | None:
    """Makes the exception that tells what failed in the turns. None: nothing did."""
    failed = _failed(rounds)
    if not failed:
        return None
    foreign = [error for _, error in failed if not isinstance(error, RankBridgeError)]
    if foreign:
        note(foreign[0], rounds)
        return foreign[0]
    outcomes: list[Outcome[object]] = [
        Outcome(rank=rank, error=turn.error if isinstance(turn.error, RankBridgeError) else None)
        for rank, turn in _turns(rounds)
    ]
    return gang_error(outcomes)


def _failed(rounds: Sequence[Round[Any]]) -> list[tuple[int, Exception]]:
    return [(rank, turn.error) for rank, turn in _turns(rounds) if turn.error is not None]


def _turns(rounds: Sequence[Round[Any]]) -> list[tuple[int, Turn[Any]]]:
    return [pair for each in rounds for pair in zip(each.ranks, each.turns, strict=True)]
