"""What sidecars tell each other of gang calls over their control links."""

from __future__ import annotations

from enum import Enum, auto
from typing import NamedTuple

from ..admission.admission import Member, Ruling, Verdict

MAX_PART = 64 * 1024
"""Bytes of a member's part of a gang call. More would keep a link busy that verdicts need."""
MAX_RESULT = 4096
"""Bytes of a report's result. What is longer stays on its rank, where it can be awaited."""


class Command(NamedTuple):
    """A member's part of a gang call, from the leader of its group. `number`: names the call among the leader's."""

    group: str
    number: int
    part: bytes


class Report(NamedTuple):
    """What became of a member's part.

    `refusal`: name of the error code with which it was refused; empty: it came. `result` is empty for one that is too
    long.
    """

    group: str
    rank_in_group: int
    number: int
    operation_id: str
    result: bytes
    refusal: str = ""
    reason: str = ""

    @property
    def verdict(self) -> Verdict:
        """What a refusal means to the other members."""
        return Verdict(Ruling.REFUSED, (Member(self.rank_in_group, self.reason),), refusal=self.refusal)


class Errand(Enum):
    """What a relay brings. Names are those of `rankbridge.link.v1.Errand`."""

    CALL = auto()
    ANSWER = auto()
    WITHDRAW = auto()


class Relay(NamedTuple):
    """A gang call, what became of it, or its withdrawal, from `source` to `target`, ranks in the gang.

    `number`: names the call among those of the rank that was asked.
    """

    source: int
    target: int
    number: int
    errand: Errand
    body: bytes = b""


Letter = Command | Report | Relay
