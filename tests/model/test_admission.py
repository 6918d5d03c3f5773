"""Admission and desk beside a model that keeps everything and forgets nothing."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import product
from typing import ClassVar
from unittest.mock import patch

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule
from tests.model.settings import PURE

from rankbridge_server.core.admission.admission import (
    REMEMBERED_FAILURES,
    Admission,
    Arrival,
    Member,
    Notice,
    Reply,
    Ruling,
    Straggling,
    Verdict,
)
from rankbridge_server.links import desk
from rankbridge_server.links.desk import Desk

PLACES = st.integers(0, 3)
ARRIVALS = st.builds(
    Arrival,
    sequence=st.sampled_from([0, 0, 0, 1]),
    operation_id=st.sampled_from(["", "a", "a", "b", "c"]),
    contract=st.sampled_from(["sum", "sum", "sum", "max"]),
    timeout=st.sampled_from([1.0, 3.0, 0.0]),
    payload=st.sampled_from([b"", b"x", b"yy"]),
)

REFUSED = Verdict(Ruling.REFUSED, (Member(0, "why"),), refusal="UNKNOWN_REF")
WITHDRAWN = Verdict(Ruling.WITHDRAWN)

Said = tuple[int, Arrival, Ruling, tuple[str | None, ...], tuple[bytes, ...]]
"""One reply: to whom, for what, the ruling, who had come with what, and what they had given."""


Told = tuple[Ruling | None, Arrival, str, tuple[float | None, ...], float]
"""One notice: how the round failed, or None for stragglers; whose arrival stands for it; its operation id; and of
stragglers when each member came after the first, and how long that has waited."""


@dataclass
class Waiter:
    """A member that waits."""

    arrival: Arrival
    came: float

    @property
    def due(self) -> float:
        return self.came + self.arrival.timeout


class Table:
    """What the leader of a group must say, told from the whole history of it."""

    def __init__(self, size: int, patience: float = math.inf) -> None:
        self.size = size
        self.patience = patience
        self.waiters: dict[int, Waiter] = {}
        self.failed: dict[str, tuple[Ruling, tuple[str | None, ...]]] = {}
        self.told: list[Told] = []
        self.tardy = False
        self.last_go = ""

    @property
    def due(self) -> float | None:
        dues = [waiter.due for waiter in self.waiters.values()]
        if self.waiters and not self.tardy and self.patience < math.inf:
            dues.append(min(waiter.came for waiter in self.waiters.values()) + self.patience)
        return min(dues, default=None)

    def arrive(self, place: int, arrival: Arrival, now: float) -> list[Said]:
        if arrival.operation_id in self.failed:
            return [(place, arrival, *self.failed[arrival.operation_id], ())]
        self.waiters[place] = Waiter(arrival, now)
        if len(self.waiters) < self.size:
            return []
        if self.tardy:
            self._tell_stragglers(now)
        return self._rule()

    def withdraw(self, place: int, sequence: int, operation_id: str) -> list[Said]:
        waiter = self.waiters.get(place)
        if waiter is None:
            return []
        if waiter.arrival.sequence != sequence or waiter.arrival.operation_id != operation_id:
            return []
        del self.waiters[place]
        self.tardy = self.tardy and bool(self.waiters)
        return [(place, waiter.arrival, Ruling.WITHDRAWN, (), ())]

    def refuse(self, operation_id: str, verdict: Verdict) -> list[Said]:
        if operation_id == self.last_go:
            return []
        members = tuple(member.arrival for member in verdict.members)
        self.failed.setdefault(operation_id, (verdict.ruling, members))
        came = {place: it for place, it in self.waiters.items() if it.arrival.operation_id == operation_id}
        for place in came:
            del self.waiters[place]
        self.tardy = self.tardy and bool(self.waiters)
        return [(place, it.arrival, verdict.ruling, members, ()) for place, it in came.items()]

    def expire(self, now: float) -> list[Said]:
        if any(waiter.due <= now for waiter in self.waiters.values()):
            return self._rule()
        if self.due is not None and self.due <= now:
            self.tardy = True
            self._tell_stragglers(now)
        return []

    def _tell_stragglers(self, now: float) -> None:
        start = min(waiter.came for waiter in self.waiters.values())
        first = next(it.arrival for it in self.waiters.values() if it.came == start)
        after = tuple(
            self.waiters[place].came - start if place in self.waiters else None for place in range(self.size)
        )
        self.told.append((None, first, self._id(), after, now - start))

    def _id(self) -> str:
        return next((it.arrival.operation_id for it in self.waiters.values() if it.arrival.operation_id), "")

    def _rule(self) -> list[Said]:
        self.tardy = False
        operation_id = self._id()
        came = {place: waiter.arrival for place, waiter in self.waiters.items()}
        self.waiters = {}
        one, *others = came.values()
        ids = {it.operation_id for it in came.values()} - {""}
        agree = all((it.sequence, it.contract) == (one.sequence, one.contract) for it in others)
        if agree and len(ids) < 2 and len(came) == self.size:
            self.last_go = operation_id
            given = tuple(came[place].payload for place in range(self.size))
            payloads = given if any(given) else ()
            return [(place, arrival, Ruling.GO, (), payloads) for place, arrival in came.items()]
        ruling = Ruling.PEER_MISSING if agree and len(ids) < 2 else Ruling.MISMATCH
        self.told.append((ruling, came[min(came)], operation_id, (), 0.0))
        members = tuple(str(came[place]) if place in came else None for place in range(self.size))
        self.failed.update(dict.fromkeys(ids, (ruling, members)))
        return [(place, arrival, ruling, members, ()) for place, arrival in came.items()]


def said(reply: Reply) -> Said:
    verdict = reply.verdict
    assert [member.rank_in_group for member in verdict.members] == list(range(len(verdict.members)))
    members = tuple(member.arrival for member in verdict.members)
    return reply.rank_in_group, reply.arrival, verdict.ruling, members, verdict.payloads


def noticed(notice: Notice) -> Told:
    if isinstance(notice, Straggling):
        return None, notice.arrival, notice.operation_id, notice.after, notice.waited
    assert notice.verdict.members[notice.rank_in_group].arrival == str(notice.arrival)
    return notice.verdict.ruling, notice.arrival, notice.operation_id, (), 0.0


class AdmissionMachine(RuleBasedStateMachine):
    """One group of one to four members."""

    @initialize(size=st.integers(1, 4), patience=st.sampled_from([math.inf, 0.5, 2.0]))
    def begin(self, size: int, patience: float) -> None:
        self.size = size
        self.notices: list[Notice] = []
        self.admission = Admission(size, patience, self.notices.append)
        self.table = Table(size, patience)
        self.now = 0.0

    @rule(place=PLACES, arrival=ARRIVALS)
    def arrive(self, place: int, arrival: Arrival) -> None:
        if place >= self.size or place in self.table.waiters:
            with pytest.raises(ValueError, match="rank_in_group"):
                self.admission.arrive(place, arrival, self.now)
        else:
            replies = self.admission.arrive(place, arrival, self.now)
            self._compare(replies, self.table.arrive(place, arrival, self.now))

    @rule(place=PLACES, sequence=st.sampled_from([0, 0, 1]), operation_id=st.sampled_from(["", "a", "b"]))
    def withdraw(self, place: int, sequence: int, operation_id: str) -> None:
        replies = self.admission.withdraw(place, sequence, operation_id)
        self._compare(replies, self.table.withdraw(place, sequence, operation_id))

    @rule(operation_id=st.sampled_from(["a", "b", "c"]), verdict=st.sampled_from([REFUSED, WITHDRAWN]))
    def refuse(self, operation_id: str, verdict: Verdict) -> None:
        replies = self.admission.refuse(operation_id, verdict)
        self._compare(replies, self.table.refuse(operation_id, verdict))

    @rule(seconds=st.sampled_from([0.0, 0.5, 1.0, 3.0]))
    def pass_time(self, seconds: float) -> None:
        self.now += seconds
        self._compare(self.admission.expire(self.now), self.table.expire(self.now))

    def _compare(self, replies: list[Reply], expected: list[Said]) -> None:
        assert sorted(map(said, replies), key=lambda it: it[0]) == sorted(expected, key=lambda it: it[0])
        assert self.admission.deadline == self.table.due
        assert list(map(noticed, self.notices)) == self.table.told


class Clock:
    """Stands for the module `time`."""

    def __init__(self) -> None:
        self.now = 0.0

    def monotonic(self) -> float:
        return self.now


class DeskMachine(RuleBasedStateMachine):
    """A desk with up to two groups of a gang of four, which it may lead later than their members come."""

    GROUPS: ClassVar = {"all": (2, 0, 1, 3), "two": (3, 1)}

    def __init__(self) -> None:
        super().__init__()
        self.sent: list[tuple[int, str, Reply]] = []
        self.tables: dict[str, Table] = {}
        self.early: dict[str, list[tuple[int, Arrival, float]]] = {}
        self.clock = Clock()
        self.desk = Desk(lambda rank, group, reply: self.sent.append((rank, group, reply)), lambda *_: None)
        self.patch = patch.object(desk, "time", self.clock)
        self.patch.start()

    def teardown(self) -> None:
        self.patch.stop()

    @rule(group=st.sampled_from(["all", "two"]))
    def lead(self, group: str) -> None:
        """Members that came early count from when they came."""
        if group in self.tables:
            return
        table = self.tables[group] = Table(len(self.GROUPS[group]))
        expected: list[tuple[str, Said]] = []
        for place, arrival, at in self.early.pop(group, []):
            expected += [(group, it) for it in table.arrive(place, arrival, at)]
        self.desk.lead(group, self.GROUPS[group])
        self._compare(expected)

    @rule(group=st.sampled_from(["all", "two"]))
    def leave(self, group: str) -> None:
        """All that waited in the group is forgotten, without a word."""
        self.tables.pop(group, None)
        self.early.pop(group, None)
        self.desk.leave(group)
        self._compare([])

    @rule(group=st.sampled_from(["all", "two"]), rank=PLACES, arrival=ARRIVALS)
    def arrive(self, group: str, rank: int, arrival: Arrival) -> None:
        ranks, table = self.GROUPS[group], self.tables.get(group)
        if table is None:
            early = self.early.setdefault(group, [])
            if rank in ranks and ranks.index(rank) not in [place for place, _, _ in early]:
                early.append((ranks.index(rank), arrival, self.clock.now))
                assert self.desk.arrive(rank, group, arrival) == self.clock.now + arrival.timeout
            return
        if rank not in ranks or ranks.index(rank) in table.waiters:
            with pytest.raises(ValueError, match="rank"):
                self.desk.arrive(rank, group, arrival)
            self._compare([])
            return
        due = self.desk.arrive(rank, group, arrival)
        self._compare([(group, it) for it in table.arrive(ranks.index(rank), arrival, self.clock.now)])
        assert due == table.due

    @rule(
        group=st.sampled_from(["all", "two"]),
        rank=PLACES,
        sequence=st.sampled_from([0, 0, 1]),
        operation_id=st.sampled_from(["", "a", "b"]),
    )
    def withdraw(self, group: str, rank: int, sequence: int, operation_id: str) -> None:
        ranks, table = self.GROUPS[group], self.tables.get(group)
        self.desk.withdraw(rank, group, sequence, operation_id)
        heard = table is not None and rank in ranks
        answers = table.withdraw(ranks.index(rank), sequence, operation_id) if heard and table else []
        self._compare([(group, it) for it in answers])

    @rule(seconds=st.sampled_from([0.0, 0.5, 1.0, 3.0]))
    def pass_time(self, seconds: float) -> None:
        self.clock.now += seconds
        due = self.desk.expire()
        expected = [
            (group, it) for group, table in self.tables.items() for it in table.expire(self.clock.now)
        ]
        self._compare(expected)
        assert due == min((it.due for it in self.tables.values() if it.due is not None), default=None)

    def _compare(self, expected: list[tuple[str, Said]]) -> None:
        sent = [(rank, group, *said(reply)) for rank, group, reply in self.sent]
        self.sent.clear()
        wanted = [(self.GROUPS[group][it[0]], group, *it) for group, it in expected]
        assert sorted(sent, key=lambda it: it[:2]) == sorted(wanted, key=lambda it: it[:2])


TestAdmission = AdmissionMachine.TestCase
TestAdmission.settings = PURE
TestDesk = DeskMachine.TestCase
TestDesk.settings = PURE


def test_every_schedule_of_four_steps_of_two_members_is_ruled_on_as_the_model_says() -> None:
    """Exhaustive where the property tests sample: 13 things can happen at each step."""
    sides = [Arrival(0, operation_id, contract, 1.0) for operation_id in "ab" for contract in ("sum", "max")]
    sides.append(Arrival(1, "a", "sum", 1.0))
    steps: list[tuple[int, Arrival | None]] = [(place, side) for place in (0, 1) for side in sides]
    steps += [(0, None), (1, None), (2, None)]
    tried = 0
    for schedule in product(steps, repeat=4):
        notices: list[Notice] = []
        admission, table, now = Admission(2, 0.5, notices.append), Table(2, 0.5), 0.0
        for place, side in schedule:
            if side is not None and place not in table.waiters:
                replies, expected = admission.arrive(place, side, now), table.arrive(place, side, now)
            elif side is None and place < 2:
                replies, expected = admission.withdraw(place, 0, "a"), table.withdraw(place, 0, "a")
            else:
                now += 0.6
                replies, expected = admission.expire(now), table.expire(now)
            assert [said(reply) for reply in replies] == expected, schedule
            assert len(notices) == len(table.told), schedule
        tried += 1
    assert tried == 13**4


def test_the_model_and_admission_part_only_where_failures_are_forgotten() -> None:
    """The model forgets nothing; what `Admission` forgets is admitted like new."""
    admission, table = Admission(2), Table(2)
    for number in range(REMEMBERED_FAILURES + 1):
        arrival = Arrival(0, str(number), "sum", 0.0)
        for it in (admission, table):
            it.arrive(0, arrival, 0.0)
            it.expire(0.0)
    oldest, second = Arrival(0, "0", "sum", 1.0), Arrival(0, "1", "sum", 1.0)
    assert [reply.verdict.ruling for reply in admission.arrive(1, second, 0.0)] == [Ruling.PEER_MISSING]
    assert table.arrive(1, oldest, 0.0) != []
    assert admission.arrive(1, oldest, 0.0) == []
