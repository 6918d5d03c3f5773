"""What sidecars tell each other of gang calls over their control links."""

from __future__ import annotations

from enum import Enum, auto
from typing import NamedTuple

from ..admission.admission import Member, Ruling, Verdict
from ..errors import Failure

MAX_PART = 64 * 1024
"""Bytes of a member's part of a gang call. More would keep a link busy that verdicts need."""
MAX_RESULT = 4096
"""Bytes of a report's result. What is longer stays on its rank, where it can be awaited."""


_MAX_SHOWN = 500


def shown(text: str) -> str:
    """A text as others are shown it; of a very long one, the beginning."""
    return text if len(text) <= _MAX_SHOWN else f"{text[:_MAX_SHOWN]}... ({len(text)} characters)"


class Command(NamedTuple):
    """A member's part of a gang call, from the leader of its group. `number`: names the call among the leader's."""

    group: str
    number: int
    part: bytes


class Report(NamedTuple):
    """What became of a member's part. `number` 0: of its call of an operation that is no gang call, and a refusal.

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

    @classmethod
    def of_refusal(
        cls, group: str, rank_in_group: int, failure: Failure, number: int = 0, result: bytes = b""
    ) -> Report:
        """The member will not come, and why."""
        operation_id = failure.place.operation_id if failure.place else ""
        reason = shown(str(failure))
        return cls(group, rank_in_group, number, operation_id, result, failure.code.name, reason)

    @property
    def verdict(self) -> Verdict:
        """What a refusal means to the other members."""
        return Verdict(Ruling.REFUSED, (Member(self.rank_in_group, self.reason),), refusal=self.refusal)


class RelayKind(Enum):
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
    kind: RelayKind
    body: bytes = b""


GangMessage = Command | Report | Relay
