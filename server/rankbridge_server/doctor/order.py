"""Ranks that call the same collectives in another order, which has the same contracts: found by the lines that call."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from .evidence import Evidence, Frame, Group
from .numbering import collectives

_NEAR = 4
"""Calls between which the order was changed are at most this far apart."""


@dataclass(frozen=True)
class Swap:
    """Ranks that were at `there` when the others were at `here`, and the other way round."""

    group: Group
    number: int
    here: Frame
    there: Frame
    others: tuple[int, ...]
    swapped: tuple[int, ...]


def swaps(evidence: Evidence) -> Swap | None:
    """The first change of order in a group of which every call's line is known."""
    for group, numbers in collectives(evidence):
        sites = {
            number: {rank.rank: call.site for rank, call in calls if call.site is not None}
            for number, calls in numbers.items()
        }
        for number in sorted(sites):
            found = _swap(group, number, sites)
            if found is not None:
                return found
    return None


def _swap(group: Group, number: int, numbers: dict[int, dict[int, Frame]]) -> Swap | None:
    at = numbers[number]
    if len(set(at.values())) != 2:
        return None
    (here, count), (there, fewer) = Counter(at.values()).most_common()
    if count == fewer:
        here, there = sorted((here, there), key=lambda it: (it.file, it.line))
    others = tuple(sorted(rank for rank, site in at.items() if site == here))
    swapped = tuple(sorted(rank for rank, site in at.items() if site == there))
    for later in range(number + 1, number + 1 + _NEAR):
        then = numbers.get(later, {})
        if (
            {then.get(rank) for rank in others} == {there}
            and {then.get(rank) for rank in swapped} == {here}
            and _agreed_before(number, numbers, here, there)
        ):
            return Swap(group, number, here, there, others, swapped)
    return None


def _agreed_before(number: int, numbers: dict[int, dict[int, Frame]], *sites: Frame) -> bool:
    """Whether at least once before all ranks were at the same one of these lines: else it is the script's way."""
    # The oldest calls are not known of all of them: each rank has its newest.
    everybody = {rank for at in numbers.values() for rank in at}
    return any(
        numbers[before].keys() == everybody
        and len(set(numbers[before].values())) == 1
        and {*numbers[before].values()} <= {*sites}
        for before in numbers
        if before < number
    )
