"""Who may enter the backend: the leader of a group compares what its members ask for.

A state machine without clocks, threads or sockets; `links` drives it. Times are seconds of any one clock.
"""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum, auto
from typing import NamedTuple

REMEMBERED_FAILURES = 256


class Ruling(Enum):
    """How an admission ended. Names are those of `rankbridge.link.v1.Ruling`."""

    GO = auto()
    MISMATCH = auto()
    PEER_MISSING = auto()
    WITHDRAWN = auto()


class Arrival(NamedTuple):
    """One member has come for an operation.

    `sequence`: GO verdicts of the group that the member has seen. `operation_id`: empty agrees with any.
    `contract`: what the member asks for; equal texts agree. `timeout`: seconds it waits for the others.
    `payload`: what it gives all others with its arrival.
    """

    sequence: int
    operation_id: str
    contract: str
    timeout: float
    payload: bytes = b""

    def __str__(self) -> str:
        return f"{self.contract} #{self.sequence}" + (f" id={self.operation_id}" if self.operation_id else "")


@dataclass(frozen=True, slots=True)
class Member:
    """One member as the leader saw it when it ruled; `arrival` is None for one that had not come."""

    rank_in_group: int
    arrival: str | None


@dataclass(frozen=True, slots=True)
class Verdict:
    """The leader's answer: `members` when it is not GO, `payloads` by rank in group when it is."""

    ruling: Ruling
    members: tuple[Member, ...] = ()
    payloads: tuple[bytes, ...] = ()


GO = Verdict(Ruling.GO)
"""The verdict when nobody gave a payload."""


class Reply(NamedTuple):
    """A verdict for one member, with the arrival that it answers."""

    rank_in_group: int
    arrival: Arrival
    verdict: Verdict


class Admission:
    """The admissions of one group, as its leader sees them.

    One round at a time: it ends with GO or MISMATCH when all members have come, and with MISMATCH or
    PEER_MISSING at the earliest timeout of those who have. After a round that failed, members who come late for
    the same operation id get the verdict that the others had.
    """

    def __init__(self, size: int) -> None:
        self._size = size
        self._arrivals: dict[int, Arrival] = {}
        self._due: dict[int, float] = {}
        self._deadline = math.inf
        self._failed: OrderedDict[str, Verdict] = OrderedDict()

    @property
    def deadline(self) -> float | None:
        """When `expire` has something to do; None: never, as things are."""
        return None if self._deadline == math.inf else self._deadline

    def arrive(self, rank_in_group: int, arrival: Arrival, now: float) -> list[Reply]:
        """A member has come; returns the replies that this brings about.

        Raises ValueError when it is not a member or has come already.
        """
        if not 0 <= rank_in_group < self._size:
            raise ValueError(f"rank_in_group {rank_in_group} is not in a group of {self._size}")
        if rank_in_group in self._arrivals:
            raise ValueError(f"rank_in_group {rank_in_group} came twice: {arrival}")
        failed = self._failed.get(arrival.operation_id) if self._failed and arrival.operation_id else None
        if failed is not None:
            return [Reply(rank_in_group, arrival, failed)]
        self._arrivals[rank_in_group] = arrival
        if len(self._arrivals) == self._size:
            return self._rule()
        due = self._due[rank_in_group] = now + arrival.timeout
        self._deadline = min(self._deadline, due)
        return []

    def withdraw(self, rank_in_group: int, sequence: int, operation_id: str) -> list[Reply]:
        """A member wants to leave again. Nothing happens when its arrival was ruled on: the verdict is under way."""
        arrival = self._arrivals.get(rank_in_group)
        if arrival is None or (arrival.sequence, arrival.operation_id) != (sequence, operation_id):
            return []
        del self._arrivals[rank_in_group], self._due[rank_in_group]
        self._deadline = min(self._due.values(), default=math.inf)
        return [Reply(rank_in_group, arrival, Verdict(Ruling.WITHDRAWN))]

    def expire(self, now: float) -> list[Reply]:
        """The replies that are due because time has passed."""
        return self._rule() if now >= self._deadline else []

    def _rule(self) -> list[Reply]:
        arrivals, self._arrivals, self._due, self._deadline = self._arrivals, {}, {}, math.inf
        verdict = self._verdict(arrivals)
        if verdict.ruling is not Ruling.GO:
            self._remember(arrivals, verdict)
        return [Reply(rank, arrival, verdict) for rank, arrival in arrivals.items()]

    def _verdict(self, arrivals: dict[int, Arrival]) -> Verdict:
        agree = _agree(arrivals.values())
        if agree and len(arrivals) == self._size:
            payloads = tuple(arrivals[rank].payload for rank in range(self._size))
            return Verdict(Ruling.GO, payloads=payloads) if any(payloads) else GO
        members = tuple(
            Member(rank, str(arrivals[rank]) if rank in arrivals else None) for rank in range(self._size)
        )
        return Verdict(Ruling.PEER_MISSING if agree else Ruling.MISMATCH, members=members)

    def _remember(self, arrivals: dict[int, Arrival], verdict: Verdict) -> None:
        for arrival in arrivals.values():
            if arrival.operation_id:
                self._failed[arrival.operation_id] = verdict
        while len(self._failed) > REMEMBERED_FAILURES:
            self._failed.popitem(last=False)


def _agree(arrivals: Iterable[Arrival]) -> bool:
    first, *others = arrivals
    operation_id = first.operation_id
    for it in others:
        if it is first:
            continue
        if it.sequence != first.sequence or it.contract != first.contract:
            return False
        operation_id = operation_id or it.operation_id
        if it.operation_id and it.operation_id != operation_id:
            return False
    return True
