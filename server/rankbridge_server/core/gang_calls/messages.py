"""The messages of gang calls that sidecars send each other over their control links."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum, auto
from types import MappingProxyType
from typing import NamedTuple

from ..admission.admission import Member, Ruling, Verdict
from ..errors import ErrorCode, Failure, Raised, shown

MAX_PART = 64 * 1024
"""Bytes of a member's part of a gang call. A larger part would delay verdicts on the same link."""
MAX_RESULT = 4096
"""Bytes of a report's result. A longer one stays on its rank, where callers can await it."""


class Command(NamedTuple):
    """A member's part of a gang call, from the leader of its group. `number`: unique among the leader's calls."""

    group: str
    number: int
    part: bytes


class Report(NamedTuple):
    """The outcome of a member's part. `number`: of the gang call; 0: the refusal of an operation that is none.

    `refusal`: name of the error code of a refusal; empty: the member came. `result`: empty when it is too long.
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
        """A report that the member refuses the operation, and why."""
        operation_id = failure.place.operation_id if failure.place else ""
        reason = shown(str(failure))
        return cls(group, rank_in_group, number, operation_id, result, failure.code.name, reason)

    @property
    def verdict(self) -> Verdict:
        """The verdict that a refusal brings the other members."""
        return Verdict(Ruling.REFUSED, (Member(self.rank_in_group, self.reason),), refusal=self.refusal)


class RelayKind(Enum):
    """The content of a relay. Names are those of `rankbridge.link.v1.Errand`."""

    CALL = auto()
    ANSWER = auto()
    WITHDRAW = auto()
    STORE = auto()
    STORED = auto()


class Relay(NamedTuple):
    """A gang call, its response, or its withdrawal, from `source` to `target`, ranks in the gang.

    Or a request to the generation's store, and its answer. `number`: unique among the calls, or the requests, of the
    rank that relays them.
    """

    source: int
    target: int
    number: int
    kind: RelayKind
    body: bytes = b""


class Release(NamedTuple):
    """A call of a function has failed on the member of `rank` in the gang; None: it is to end on all members.

    `begun`: how many collectives the failed member had begun in each torch.distributed group, by torch's name.
    `code`: CANCELLED or DEADLINE_EXCEEDED where it has ended as it was asked to, by its caller or at its deadline.
    """

    group: str
    operation_id: str
    rank: int | None
    reason: str
    raised: Raised | None = None
    begun: Mapping[str, int] = MappingProxyType({})
    code: ErrorCode | None = None


GangMessage = Command | Report | Relay | Release
