"""Admission to the backend: the leader of a group compares the contracts of its members.

A state machine without clocks, threads or sockets; `links` drives it. Times are seconds of any one clock.
"""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from enum import Enum, auto
from typing import NamedTuple

from ..activity import Activity
from .inquiries import Known

REMEMBERED_FAILURES = 256


class Ruling(Enum):
    """How an admission ended. Names are those of `rankbridge.link.v1.Ruling`."""

    GO = auto()
    MISMATCH = auto()
    PEER_MISSING = auto()
    WITHDRAWN = auto()
    REFUSED = auto()


class Arrival(NamedTuple):
    """A member's arrival at an operation.

    `sequence`: number of GO verdicts that the member has seen in the group. `operation_id`: an empty one agrees with
    any. `contract`: what the member asks for; equal texts agree. `timeout`: seconds that the member waits for the
    others. `payload`: bytes for all other members. `site`: the line of code that has called; it is not compared.
    """

    sequence: int
    operation_id: str
    contract: str
    timeout: float
    payload: bytes = b""
    site: str = ""

    def __str__(self) -> str:
        return f"{self.contract} #{self.sequence + 1}" + (
            f" id={self.operation_id}" if self.operation_id else ""
        )


@dataclass(frozen=True, slots=True)
class Member:
    """One member when the leader ruled. `arrival`: the text of its arrival; None: it had not come. `site`: of it.

    `activity`: what it does instead of coming; None: it was not asked.
    """

    rank_in_group: int
    arrival: str | None
    site: str = ""
    activity: Activity | None = None


@dataclass(frozen=True, slots=True)
class Verdict:
    """The leader's answer. `payloads`: with GO, by rank in group. `members`: with every other ruling.

    With REFUSED `members` has only the member that refused, with its reason, and `refusal` names its error code.
    """

    ruling: Ruling
    members: tuple[Member, ...] = ()
    payloads: tuple[bytes, ...] = ()
    refusal: str = ""

    @property
    def missing(self) -> list[int]:
        """The members that had not come, by rank in group."""
        return [it.rank_in_group for it in self.members if it.arrival is None]

    def knowing(self, known: Known) -> Verdict:
        """The same verdict, with what the missing members do."""
        return replace(self, members=with_activities(self.members, known))


GO = Verdict(Ruling.GO)
"""The verdict GO when no member sent a payload."""


class Reply(NamedTuple):
    """A verdict for one member, and the arrival that it answers."""

    rank_in_group: int
    arrival: Arrival
    verdict: Verdict


class Straggling(NamedTuple):
    """An admission takes long because of missing members. Noticed again once all have come.

    `arrival`: of the first member. `operation_id`: of any member that has named one. `after`: by rank in group,
    seconds after the first arrival; None: missing. `waited`: seconds since the first arrival.
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


class Met(NamedTuple):
    """A round for which all members have come. `last`: the rank in group that came last.

    `waited`: seconds that the others have waited for it, all together.
    """

    last: int
    waited: float


Notice = Straggling | Failed
"""What an observer of a group's admissions gets."""


@dataclass(frozen=True, slots=True)
class _Refusal:
    """A member's last refusal of an operation, and how many times the member has refused it."""

    times: int
    verdict: Verdict


def with_activities(members: Iterable[Member], known: Known) -> tuple[Member, ...]:
    """Members, with what is known of what they do."""
    return tuple(replace(it, activity=known.get(it.rank_in_group)) for it in members)


def _nobody(notice: Notice) -> None:
    """Ignores a notice."""


class Admission:
    """The admissions of one group, as its leader sees them.

    There is one round at a time. It ends with GO or MISMATCH when all members have come, and with MISMATCH or
    PEER_MISSING at the earliest timeout of the members that have. After a failed round, a member that comes late for
    the same operation id gets the verdict of the others. So does a member that comes for an operation after another
    has refused it. A refusal holds for members that have refused the operation less often, until the refusing member
    comes itself: a member that has refused it as often calls it anew.
    """

    def __init__(
        self, size: int, patience: float = math.inf, on_notice: Callable[[Notice], None] = _nobody
    ) -> None:
        """`on_notice`: called when a round fails, when one takes `patience` seconds, and when that one is complete."""
        self._size = size
        self._patience = patience
        self._on_notice = on_notice
        # When stragglers of this round are to be noticed, and whether they were.
        self._straggling_due = math.inf
        self._straggling_noticed = False
        self._arrivals: dict[int, Arrival] = {}
        self._due: dict[int, float] = {}
        self._deadline = math.inf
        # Sum of the times at which they came.
        self._came_sum = 0.0
        self.met = Met(0, 0.0)
        """The last round that was complete, whatever the ruling."""
        self._failed: OrderedDict[str, Verdict] = OrderedDict()
        # Refusals without a verdict yet, by operation id and by the rank in group that refused.
        self._refused: OrderedDict[str, dict[int, _Refusal]] = OrderedDict()
        # Operation id of the last round that ended with GO.
        self._last_go = ""

    @property
    def deadline(self) -> float | None:
        """When `expire` is due; None: not while nothing changes."""
        due = self._deadline if self._deadline < self._straggling_due else self._straggling_due
        return None if due == math.inf else due

    def arrive(self, rank_in_group: int, arrival: Arrival, now: float) -> list[Reply]:
        """Adds a member's arrival; returns the replies to send.

        Raises ValueError for a rank that is no member, or that has come already.
        """
        if not 0 <= rank_in_group < self._size:
            raise ValueError(f"rank_in_group {rank_in_group} is not in a group of {self._size}")
        if rank_in_group in self._arrivals:
            raise ValueError(f"rank_in_group {rank_in_group} came twice: {arrival}")
        failed = self._failed.get(arrival.operation_id) if self._failed and arrival.operation_id else None
        if failed is not None:
            return [Reply(rank_in_group, arrival, failed)]
        if self._refused:
            refused = self._refused_to(rank_in_group, arrival.operation_id)
            if refused is not None:
                return [*self._fail(arrival.operation_id, refused), Reply(rank_in_group, arrival, refused)]
        self._arrivals[rank_in_group] = arrival
        if len(self._arrivals) == self._size:
            self.met = Met(rank_in_group, (self._size - 1) * now - self._came_sum)
            if self._straggling_noticed:
                self._due[rank_in_group] = now + arrival.timeout
                self._on_notice(self._straggling(now))
            return self._rule()
        if not self._due:
            self._straggling_due = now + self._patience
        due = self._due[rank_in_group] = now + arrival.timeout
        self._deadline = min(self._deadline, due)
        self._came_sum += now
        return []

    def withdraw(self, rank_in_group: int, sequence: int, operation_id: str) -> list[Reply]:
        """Withdraws a member's arrival. Does nothing after the ruling: the verdict is on its way."""
        arrival = self._arrivals.get(rank_in_group)
        if arrival is None or (arrival.sequence, arrival.operation_id) != (sequence, operation_id):
            return []
        del self._arrivals[rank_in_group], self._due[rank_in_group]
        self._look_again()
        return [Reply(rank_in_group, arrival, Verdict(Ruling.WITHDRAWN))]

    def refuse(self, operation_id: str, verdict: Verdict) -> list[Reply]:
        """Refuses an operation: members that have come for it, or come later, get `verdict`.

        Does nothing when the operation was the last one admitted: it may have another round.
        """
        if not operation_id or operation_id == self._last_go:
            return []
        kept = verdict.ruling is Ruling.REFUSED and operation_id not in self._failed
        if kept and not self._count(operation_id, verdict):
            return []
        return self._fail(operation_id, verdict)

    def _fail(self, operation_id: str, verdict: Verdict) -> list[Reply]:
        """Makes `verdict` that of all members; returns the replies to those that have come for the operation."""
        came = self._came_for(operation_id)
        for rank in came:
            del self._arrivals[rank], self._due[rank]
        self._look_again()
        self._remember((operation_id,), verdict)
        return [Reply(rank, arrival, verdict) for rank, arrival in came.items()]

    def _came_for(self, operation_id: str) -> dict[int, Arrival]:
        return {rank: it for rank, it in self._arrivals.items() if it.operation_id == operation_id}

    def _count(self, operation_id: str, verdict: Verdict) -> bool:
        """Stores a refusal; returns whether it holds for a member that has come."""
        refusals = self._refused.setdefault(operation_id, {})
        place = verdict.members[0].rank_in_group
        times = refusals[place].times + 1 if place in refusals else 1
        refusals[place] = _Refusal(times, verdict)
        if any(rank not in refusals or refusals[rank].times < times for rank in self._came_for(operation_id)):
            return True
        if len(refusals) == self._size and len({it.times for it in refusals.values()}) == 1:
            # The refusal holds for no member any more.
            del self._refused[operation_id]
        while len(self._refused) > REMEMBERED_FAILURES:
            self._refused.popitem(last=False)
        return False

    def _refused_to(self, rank_in_group: int, operation_id: str) -> Verdict | None:
        """The refusal that holds for a member."""
        refusals = self._refused.get(operation_id, {})
        mine = refusals[rank_in_group].times if rank_in_group in refusals else 0
        for place, it in refusals.items():
            came = self._arrivals.get(place)
            if it.times > mine and (came is None or came.operation_id != operation_id):
                return it.verdict
        return None

    def expire(self, now: float) -> list[Reply]:
        """Rules on a round whose time has passed; returns the replies to send."""
        if now >= self._deadline:
            return self._rule()
        if now >= self._straggling_due:
            self._straggling_due, self._straggling_noticed = math.inf, True
            self._on_notice(self._straggling(now))
        return []

    def waiting(self, now: float) -> Straggling | None:
        """The members for which the current round waits; None: no member has come. Any thread may ask."""
        due = self._due.copy()
        # A member whose arrival was withdrawn meanwhile has not come.
        arrivals = {rank: it for rank, it in self._arrivals.copy().items() if rank in due}
        return _straggling(arrivals, due, self._size, now) if arrivals else None

    def _look_again(self) -> None:
        """Updates the deadlines after members have left the round."""
        self._deadline = min(self._due.values(), default=math.inf)
        self._came_sum = sum(map(self._came, self._due))
        self._straggling_noticed = self._straggling_noticed and bool(self._due)
        if not self._straggling_noticed:
            self._straggling_due = min(map(self._came, self._due), default=math.inf) + self._patience

    def _came(self, rank_in_group: int) -> float:
        return self._due[rank_in_group] - self._arrivals[rank_in_group].timeout

    def _straggling(self, now: float) -> Straggling:
        return _straggling(self._arrivals, self._due, self._size, now)

    def _rule(self) -> list[Reply]:
        arrivals, self._arrivals, self._due, self._deadline = self._arrivals, {}, {}, math.inf
        self._straggling_due, self._straggling_noticed, self._came_sum = math.inf, False, 0.0
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
        members = tuple(_member(rank, arrivals.get(rank)) for rank in range(self._size))
        return Verdict(Ruling.PEER_MISSING if agree else Ruling.MISMATCH, members=members)

    def _remember(self, operation_ids: Iterable[str], verdict: Verdict) -> None:
        for operation_id in operation_ids:
            # Late members get the first verdict, as the others did.
            if operation_id:
                self._failed.setdefault(operation_id, verdict)
                self._refused.pop(operation_id, None)
        while len(self._failed) > REMEMBERED_FAILURES:
            self._failed.popitem(last=False)


def _member(rank_in_group: int, arrival: Arrival | None) -> Member:
    if arrival is None:
        return Member(rank_in_group, None)
    return Member(rank_in_group, str(arrival), arrival.site)


def _straggling(arrivals: dict[int, Arrival], due: dict[int, float], size: int, now: float) -> Straggling:
    came = {rank: due[rank] - it.timeout for rank, it in arrivals.items()}
    first = min(came, key=lambda rank: came[rank])
    after = tuple(came[rank] - came[first] if rank in came else None for rank in range(size))
    return Straggling(arrivals[first], _named(arrivals.values()), after, now - came[first])


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
