"""A case, and what is wrong with it."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

SIZE = 4
SHORT_MS = 300
"""Timeout of calls that somebody keeps waiting for ever."""
LONG_MS = 10_000

Json = dict[str, Any]
Named = Mapping[int, frozenset[int]]


@dataclass(frozen=True)
class Truth:
    """What is wrong, and what errors should say of it.

    Attributes:
        codes: The right code of each rank whose call cannot succeed.
        at_fault: By such a rank: who is missing, lost, or refused.
        sides: Members by what they ask for. Empty: it is no matter of that.
    """

    codes: Mapping[int, str]
    at_fault: Named = field(default_factory=dict)
    sides: frozenset[frozenset[int]] = frozenset()


@dataclass(frozen=True)
class Labelled:
    """One case.

    Attributes:
        kind: Its class.
        name: Its class, and which of it.
        step: What the ranks do, in the words of scenarios.
        truth: What is wrong. None: nothing is.
        groups: Groups beside world.
        group: Where it is tried afterwards that all is well.
        victims: Ranks that something is done to; their own calls are no matter.
        order: Who comes first, in words.
        first: Those who do. Empty: all come at once.
    """

    kind: str
    name: str
    step: Json
    truth: Truth | None
    groups: Mapping[str, Sequence[int]]
    group: str = "world"
    victims: frozenset[int] = frozenset()
    order: str = "All at once"
    first: frozenset[int] = frozenset()


def disagreement(members: Collection[int], odd: Collection[int]) -> Truth:
    """Two sides: every member gets both."""
    sides = frozenset({frozenset(odd), frozenset(members) - frozenset(odd)})
    return Truth(dict.fromkeys(members, "MISMATCH"), sides=sides)


def missing(by_rank: Mapping[int, Collection[int]]) -> Truth:
    """Each of these ranks waits in vain for others."""
    return Truth(
        dict.fromkeys(by_rank, "PEER_MISSING"), {rank: frozenset(it) for rank, it in by_rank.items()}
    )
