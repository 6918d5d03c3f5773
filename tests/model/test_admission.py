"""Admission and the leader of a group beside a model that keeps everything and forgets nothing."""

from __future__ import annotations

import math
import socket
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from unittest.mock import patch

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule
from tests.model.settings import PURE

from rankbridge.link.v1 import link_pb2 as pb
from rankbridge_server.core.activity import Activity, Doing
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
from rankbridge_server.core.admission.inquiries import ANSWER_S
from rankbridge_server.core.gang_calls.messages import Report
from rankbridge_server.core.links import Ended
from rankbridge_server.links import leader, wire
from rankbridge_server.links.group_links import Owner
from rankbridge_server.links.leader import Leader
from rankbridge_server.links.link import Link
from rankbridge_server.links.readers import Readers

PLACES = st.integers(0, 3)
ARRIVALS = st.builds(
    Arrival,
    sequence=st.sampled_from([0, 0, 0, 1]),
    operation_id=st.sampled_from(["", "a", "a", "b", "c"]),
    contract=st.sampled_from(["sum", "sum", "sum", "max"]),
    timeout=st.sampled_from([1.0, 3.0, 0.0]),
    payload=st.sampled_from([b"", b"x", b"yy"]),
)

REFUSALS = [Verdict(Ruling.REFUSED, (Member(place, "why"),), refusal="UNKNOWN_REF") for place in range(4)]
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
        self.refusals: dict[str, list[Verdict]] = {}
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
        refused = self._refused_to(place, arrival.operation_id)
        if refused is not None:
            return [*self._fail(arrival.operation_id, refused), (place, arrival, *_said(refused))]
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
        if verdict.ruling is Ruling.REFUSED and operation_id not in self.failed:
            said = self.refusals.setdefault(operation_id, [])
            said.append(verdict)
            times = self._times(_place(verdict), operation_id)
            came_for_it = [at for at, it in self.waiters.items() if it.arrival.operation_id == operation_id]
            if not any(self._times(at, operation_id) < times for at in came_for_it):
                return []
        return self._fail(operation_id, verdict)

    def _fail(self, operation_id: str, verdict: Verdict) -> list[Said]:
        members = tuple(member.arrival for member in verdict.members)
        self.failed.setdefault(operation_id, (verdict.ruling, members))
        came = {place: it for place, it in self.waiters.items() if it.arrival.operation_id == operation_id}
        for place in came:
            del self.waiters[place]
        self.tardy = self.tardy and bool(self.waiters)
        return [(place, it.arrival, verdict.ruling, members, ()) for place, it in came.items()]

    def _times(self, place: int, operation_id: str) -> int:
        return [_place(it) for it in self.refusals.get(operation_id, [])].count(place)

    def _refused_to(self, place: int, operation_id: str) -> Verdict | None:
        mine = self._times(place, operation_id)
        for it in self.refusals.get(operation_id, []):
            other = self.waiters.get(_place(it))
            has_come = other is not None and other.arrival.operation_id == operation_id
            if self._times(_place(it), operation_id) > mine and not has_come:
                return it
        return None

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
            self.refusals.pop(operation_id, None)
            given = tuple(came[place].payload for place in range(self.size))
            payloads = given if any(given) else ()
            return [(place, arrival, Ruling.GO, (), payloads) for place, arrival in came.items()]
        ruling = Ruling.PEER_MISSING if agree and len(ids) < 2 else Ruling.MISMATCH
        self.told.append((ruling, came[min(came)], operation_id, (), 0.0))
        members = tuple(str(came[place]) if place in came else None for place in range(self.size))
        self.failed.update(dict.fromkeys(ids, (ruling, members)))
        return [(place, arrival, ruling, members, ()) for place, arrival in came.items()]


def _place(refusal: Verdict) -> int:
    return refusal.members[0].rank_in_group


def said(reply: Reply) -> Said:
    verdict = reply.verdict
    if verdict.ruling is not Ruling.REFUSED:
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

    @rule(operation_id=st.sampled_from(["a", "b", "c"]), verdict=st.sampled_from([*REFUSALS, WITHDRAWN]))
    def refuse(self, operation_id: str, verdict: Verdict) -> None:
        if any(member.rank_in_group >= self.size for member in verdict.members):
            return
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


class Peer:
    """The other end of a member's link. `early`: what it has said while the leader did not know the link."""

    def __init__(self, rank: int) -> None:
        ours, self.socket = socket.socketpair()
        self.link = Link(ours)
        self.link.rank = rank
        self.linked = False
        self.early: list[Arrival] = []
        self._frames = wire.Frames()

    def verdicts(self) -> list[pb.Verdict]:
        """What the leader has said since."""
        try:
            data = self.socket.recv(1 << 20, socket.MSG_DONTWAIT)
        except BlockingIOError:
            return []
        frames = map(wire.parse, self._frames.feed(data))
        return [it.verdict for it in frames if it.WhichOneof("kind") == "verdict"]


class Unheeded(Owner):
    """Ignores everything; a lost link is a fault of the test."""

    rank = 2

    def wake_before(self, due: float | None) -> None: ...

    def forget(self, link: Link) -> None: ...

    def generation_ended(self, ended: Ended) -> None:
        raise AssertionError(ended)

    def deliver(self, message: object) -> None: ...

    def deliver_notice(self, group: str, ranks: Sequence[int], notice: Notice) -> None: ...

    def activity(self, group: str) -> Activity:
        return Activity(doing=Doing.IDLE)


Ruled = tuple[int, int, str, Ruling, tuple[str | None, ...], tuple[bytes, ...]]
"""A verdict as it has come: to which place, for what sequence and operation id, and what it says."""


class LeaderMachine(RuleBasedStateMachine):
    """The leader of a group of four, whose members may say something before the leader knows their links."""

    RANKS = (2, 0, 1, 3)

    def __init__(self) -> None:
        super().__init__()
        self.table = Table(len(self.RANKS))
        self.clock = Clock()
        self.readers = Readers()
        self.leader = Leader("all", Unheeded(), self.readers, self.RANKS, math.inf)
        self.peers = {place: Peer(rank) for place, rank in enumerate(self.RANKS) if place}
        self.patch = patch.object(leader, "time", self.clock)
        self.patch.start()

    def teardown(self) -> None:
        self.patch.stop()
        self.leader.dispose()
        self.readers.close()
        for peer in self.peers.values():
            peer.link.close()
            peer.socket.close()

    @rule(place=PLACES)
    def link(self, place: int) -> None:
        """What came early counts from now."""
        peer = self.peers.get(place)
        if peer is None or peer.linked:
            return
        peer.linked = True
        self.leader.attach(peer.link)
        self.leader.receive(peer.link)
        self._compare([it for early in peer.early for it in self.table.arrive(place, early, self.clock.now)])

    @rule(place=PLACES, arrival=ARRIVALS)
    def arrive(self, place: int, arrival: Arrival) -> None:
        if place in self.table.waiters:
            return
        peer = self.peers.get(place)
        # On a link a timeout is in milliseconds, and one at least.
        arrival = arrival._replace(timeout=max(0.001, arrival.timeout))
        if peer is None:
            self.leader._expect(arrival)
            self.leader._announce(arrival)
        elif not peer.early or peer.linked:
            peer.socket.send(wire.pack_arrival("all", arrival))
            if not peer.linked:
                peer.early.append(arrival)
                return
            self.leader.receive(peer.link)
        else:
            return
        self._compare(self.table.arrive(place, arrival, self.clock.now))

    @rule(place=PLACES, sequence=st.sampled_from([0, 0, 1]), operation_id=st.sampled_from(["", "a", "b"]))
    def withdraw(self, place: int, sequence: int, operation_id: str) -> None:
        peer, arrival = self.peers.get(place), Arrival(sequence, operation_id, "sum", 1.0)
        if peer is None:
            self.leader.withdraw(arrival)
        elif peer.linked:
            peer.socket.send(wire.pack_withdrawal("all", arrival))
            self.leader.receive(peer.link)
        else:
            return
        self._compare(self.table.withdraw(place, sequence, operation_id))

    @rule(place=PLACES, operation_id=st.sampled_from(["a", "b", "c"]))
    def refuse(self, place: int, operation_id: str) -> None:
        """A member says that it will not come for an operation."""
        report = Report("all", place, 0, operation_id, b"", "UNKNOWN_REF", "why")
        peer = self.peers.get(place)
        if peer is None:
            self.leader.report(report)
        elif peer.linked:
            peer.socket.send(wire.pack_report(report))
            self.leader.receive(peer.link)
        else:
            return
        self._compare(self.table.refuse(operation_id, report.verdict))

    @rule(seconds=st.sampled_from([0.0, 0.5, 1.0, 3.0]))
    def pass_time(self, seconds: float) -> None:
        self.clock.now += seconds
        due = self.leader.expire()
        expected = self.table.expire(self.clock.now)
        if any(ruling is not Ruling.GO for _, _, ruling, _, _ in expected):
            # No member says what it does instead of coming.
            self.clock.now += ANSWER_S
            due = self.leader.expire()
            expected += self.table.expire(self.clock.now)
        self._compare(expected)
        assert due == self.table.due

    def _compare(self, expected: list[Said]) -> None:
        ruled = [
            (place, it.sequence, it.operation_id, *_said(wire.verdict_of(it)))
            for place, peer in self.peers.items()
            for it in peer.verdicts()
        ]
        mine, verdict = self.leader._expected, self.leader._verdict
        if mine is not None and verdict is not None:
            ruled.append((0, mine.sequence, mine.operation_id, *_said(verdict)))
            self.leader._expected = None
        wanted: list[Ruled] = [
            (place, arrival.sequence, arrival.operation_id, ruling, members, payloads)
            for place, arrival, ruling, members, payloads in expected
        ]
        assert sorted(ruled, key=lambda it: it[0]) == sorted(wanted, key=lambda it: it[0])
        assert self.leader.due() == self.table.due


def _said(verdict: Verdict) -> tuple[Ruling, tuple[str | None, ...], tuple[bytes, ...]]:
    return verdict.ruling, tuple(member.arrival for member in verdict.members), verdict.payloads


TestAdmission = AdmissionMachine.TestCase
TestAdmission.settings = PURE
TestLeader = LeaderMachine.TestCase
TestLeader.settings = PURE


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
