"""Who may enter the backend: the leader of a group compares what its members ask for.

A state machine without clocks, threads or sockets; `links` drives it. Times are seconds of any one clock.
"""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Callable, Iterable
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
    REFUSED = auto()


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
    """The leader's answer: `members` when it is not GO, `payloads` by rank in group when it is.

    With REFUSED `members` is the one that refused, with the reason, and `refusal` names the code of its error.
    """

    ruling: Ruling
    members: tuple[Member, ...] = ()
    payloads: tuple[bytes, ...] = ()
    refusal: str = ""


GO = Verdict(Ruling.GO)
"""The verdict when nobody gave a payload."""


class Reply(NamedTuple):
    """A verdict for one member, with the arrival that it answers."""

    rank_in_group: int
    arrival: Arrival
    verdict: Verdict


class Straggling(NamedTuple):
    """Members keep others waiting; once all have come, told again.

    `arrival`: of the first member. `operation_id`: what any has named. `after`: by rank in group, seconds after the
    first; None: it has not come. `waited`: seconds since the first has come.
    """

    arrival: Arrival
    operation_id: str
    after: tuple[float | None, ...]
    waited: float


class Failed(NamedTuple):
    """A round ended with MISMATCH or PEER_MISSING. `arrival`: of `rank_in_group`, the first of those who have come."""

    rank_in_group: int
    arrival: Arrival
    operation_id: str
    verdict: Verdict


Notice = Straggling | Failed
"""What those are told who look at a group from outside."""


@dataclass(frozen=True, slots=True)
class _Refusal:
    """A member's last refusal of an operation, and how many times it has refused that."""

    times: int
    verdict: Verdict


def _nobody(notice: Notice) -> None:
    """Nobody looks."""


class Admission:
    """The admissions of one group, as its leader sees them.

    One round at a time: it ends with GO or MISMATCH when all members have come, and with MISMATCH or
    PEER_MISSING at the earliest timeout of those who have. After a round that failed, members who come late for
    the same operation id get the verdict that the others had. So do those whose operation a member has refused before
    they came. A refusal concerns whoever has refused the operation less often, as long as the member has not come
    itself: whoever has refused it as often calls it anew.
    """

    def __init__(
        self, size: int, patience: float = math.inf, on_notice: Callable[[Notice], None] = _nobody
    ) -> None:
        """`on_notice` is called when a round fails, when one takes `patience` seconds, and when all come after that."""
        self._size = size
        self._patience = patience
        self._on_notice = on_notice
        # When stragglers are to be told of in this round, and whether they were.
        self._straggling_due = math.inf
        self._straggling_noticed = False
        self._arrivals: dict[int, Arrival] = {}
        self._due: dict[int, float] = {}
        self._deadline = math.inf
        self._failed: OrderedDict[str, Verdict] = OrderedDict()
        # Refusals on which nobody was ruled yet, by operation id and by the place of who refused.
        self._refused: OrderedDict[str, dict[int, _Refusal]] = OrderedDict()
        # Operation id of the last round that ended with GO.
        self._last_go = ""

    @property
    def deadline(self) -> float | None:
        """When `expire` has something to do; None: never, as things are."""
        due = self._deadline if self._deadline < self._straggling_due else self._straggling_due
        return None if due == math.inf else due

    def arrive(self, rank_in_group: int, arrival: Arrival, now: float) -> list[Reply]:
        """A member has come; returns the replies that this brings about.

        Raises ValueError when it is not a member or has come already.
        """
        if not 0 <= rank_in_group < self._size:
            raise ValueError(f"rank_in_group {rank_in_group} is not in a group of {self._size}")
        if rank_in_group in self._arrivals:
            raise ValueError(f"rank_in_group {rank_in_group} came twice: {arrival}")
        failed = self._failed.get(arrival.operation_id) if self._failed and arrival.operation_id else None
        if self._refused and failed is None:
            failed = self._refused_to(rank_in_group, arrival.operation_id)
        if failed is not None:
            return [Reply(rank_in_group, arrival, failed)]
        self._arrivals[rank_in_group] = arrival
        if len(self._arrivals) == self._size:
            if self._straggling_noticed:
                self._due[rank_in_group] = now + arrival.timeout
                self._on_notice(self._straggling(now))
            return self._rule()
        if not self._due:
            self._straggling_due = now + self._patience
        due = self._due[rank_in_group] = now + arrival.timeout
        self._deadline = min(self._deadline, due)
        return []

    def withdraw(self, rank_in_group: int, sequence: int, operation_id: str) -> list[Reply]:
        """A member wants to leave again. Nothing happens when its arrival was ruled on: the verdict is under way."""
        arrival = self._arrivals.get(rank_in_group)
        if arrival is None or (arrival.sequence, arrival.operation_id) != (sequence, operation_id):
            return []
        del self._arrivals[rank_in_group], self._due[rank_in_group]
        self._look_again()
        return [Reply(rank_in_group, arrival, Verdict(Ruling.WITHDRAWN))]

    def refuse(self, operation_id: str, verdict: Verdict) -> list[Reply]:
        """An operation is not to be: who has come for it, or comes later, gets `verdict`.

        Nothing happens when it was admitted, as long as that was the last GO: it may have another round.
        """
        if not operation_id or operation_id == self._last_go:
            return []
        came = {rank: it for rank, it in self._arrivals.items() if it.operation_id == operation_id}
        kept = verdict.ruling is Ruling.REFUSED and operation_id not in self._failed
        if kept and not self._count(operation_id, verdict, came):
            return []
        for rank in came:
            del self._arrivals[rank], self._due[rank]
        self._look_again()
        self._remember((operation_id,), verdict)
        return [Reply(rank, arrival, verdict) for rank, arrival in came.items()]

    def _count(self, operation_id: str, verdict: Verdict, came: Iterable[int]) -> bool:
        """Keep a refusal; tells whether it concerns one of those who `came`."""
        refusals = self._refused.setdefault(operation_id, {})
        place = verdict.members[0].rank_in_group
        times = refusals[place].times + 1 if place in refusals else 1
        refusals[place] = _Refusal(times, verdict)
        if any(rank not in refusals or refusals[rank].times < times for rank in came):
            return True
        if len(refusals) == self._size and len({it.times for it in refusals.values()}) == 1:
            # Nobody is left whom it concerns.
            del self._refused[operation_id]
        while len(self._refused) > REMEMBERED_FAILURES:
            self._refused.popitem(last=False)
        return False

    def _refused_to(self, rank_in_group: int, operation_id: str) -> Verdict | None:
        """The refusal that concerns a member: everyone's verdict from now on."""
        refusals = self._refused.get(operation_id, {})
        mine = refusals[rank_in_group].times if rank_in_group in refusals else 0
        for place, it in refusals.items():
            came = self._arrivals.get(place)
            if it.times > mine and (came is None or came.operation_id != operation_id):
                self._remember((operation_id,), it.verdict)
                return it.verdict
        return None

    def expire(self, now: float) -> list[Reply]:
        """The replies that are due because time has passed."""
        if now >= self._deadline:
            return self._rule()
        if now >= self._straggling_due:
            self._straggling_due, self._straggling_noticed = math.inf, True
            self._on_notice(self._straggling(now))
        return []

    def _look_again(self) -> None:
        """Some have left the round."""
        self._deadline = min(self._due.values(), default=math.inf)
        self._straggling_noticed = self._straggling_noticed and bool(self._due)
        if not self._straggling_noticed:
            self._straggling_due = min(map(self._came, self._due), default=math.inf) + self._patience

    def _came(self, rank_in_group: int) -> float:
        return self._due[rank_in_group] - self._arrivals[rank_in_group].timeout

    def _straggling(self, now: float) -> Straggling:
        came = {rank: self._came(rank) for rank in self._due}
        first = min(came, key=lambda rank: came[rank])
        after = tuple(came[rank] - came[first] if rank in came else None for rank in range(self._size))
        named = _named(self._arrivals.values())
        return Straggling(self._arrivals[first], named, after, now - came[first])

    def _rule(self) -> list[Reply]:
        arrivals, self._arrivals, self._due, self._deadline = self._arrivals, {}, {}, math.inf
        self._straggling_due, self._straggling_noticed = math.inf, False
        verdict = self._verdict(arrivals)
        ids = [arrival.operation_id for arrival in arrivals.values()]
        if verdict.ruling is Ruling.GO:
            self._last_go = max(ids)
            self._refused.pop(self._last_go, None)
        else:
            self._remember(ids, verdict)
            place = min(arrivals)
            self._on_notice(Failed(place, arrivals[place], _named(arrivals.values()), verdict))
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

    def _remember(self, operation_ids: Iterable[str], verdict: Verdict) -> None:
        for operation_id in operation_ids:
            # The first verdict is the one that the others had.
            if operation_id:
                self._failed.setdefault(operation_id, verdict)
                self._refused.pop(operation_id, None)
        while len(self._failed) > REMEMBERED_FAILURES:
            self._failed.popitem(last=False)


def _named(arrivals: Iterable[Arrival]) -> str:
    return next((it.operation_id for it in arrivals if it.operation_id), "")


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
