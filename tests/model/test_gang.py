"""A gang whose members are called, cancelled, cut off, stopped, killed and formed again, under any schedule."""

from __future__ import annotations

from contextlib import ExitStack, suppress

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from tests.model.gang import Fault, Forming, Member, begin_forming
from tests.model.history import Call, History, element
from tests.model.patches import patched
from tests.model.settings import GANG
from tests.model.simulation import Simulation

from rankbridge_server.backends.fake import FakeHub
from rankbridge_server.core.coordinator import GroupDescription, ReduceOp
from rankbridge_server.core.errors import BridgeError
from rankbridge_server.core.operations.reductions import AllReduce
from rankbridge_server.core.refs.refs import Ref
from rankbridge_server.core.task import Call as TaskCall

SESSION = "s"
PLACES = st.integers(0, 3)
# How far things go before the next step: until nothing moves by itself, or for some switches only.
SWITCHES = st.sampled_from([None, None, None, 0, 1, 2, 5, 15])
FAULTS = [
    Fault(step, rank, after) for step in ("prepare", "commit") for rank in (0, 1) for after in (False, True)
]


class GangMachine(RuleBasedStateMachine):
    """Two to four ranks."""

    def __init__(self) -> None:
        super().__init__()
        self.stack = ExitStack()
        self.simulation = Simulation(0)
        self.members: list[Member] = []
        self.forming: list[Forming] = []
        self.history = History()
        self.made = 0

    @initialize(size=st.integers(2, 4), seed=st.integers(0, 1 << 16))
    def begin(self, size: int, seed: int) -> None:
        self.simulation = Simulation(seed)
        self.network = self.stack.enter_context(patched(self.simulation))
        self.stack.callback(self.simulation.close)
        self.hub = FakeHub()
        self.size = size
        self.members = [self._member(rank) for rank in range(size)]
        self._form(self.members, None)
        self.simulation.run()
        assert self.forming.pop().future.result().generation == 1

    @rule(
        absent=st.sampled_from([(), (), (), (0,), (1,), (2,), (1, 2), (0, 2)]),
        odd=st.sampled_from([None, None, None, None, 0, 1, 2]),
        in_place=st.booleans(),
        session=st.booleans(),
        group=st.sampled_from(["world", "world", "pair"]),
        timeout=st.sampled_from([6.0, 2.0, 0.5]),
        slow=st.sampled_from([0.0, 0.0, 0.3]),
        formed=st.sampled_from([True, True, False]),
        delivered=st.booleans(),
        switches=SWITCHES,
    )
    def call(
        self,
        absent: tuple[int, ...],
        odd: int | None,
        in_place: bool,
        session: bool,
        group: str,
        timeout: float,
        slow: float,
        formed: bool,
        delivered: bool,
        switches: int | None,
    ) -> None:
        """Call everywhere but where it is `absent`; one rank may ask for another thing."""
        if formed and not self._formed() and not self.forming:
            self.form(survivors_only=False, resumed=True, fault=None, switches=None)
        self.made += 1
        for place in range(len(self.members)):
            if place not in absent:
                op = ReduceOp.MAX if place == odd else ReduceOp.SUM
                self._call(place, f"op{self.made}", op, in_place, session, group, timeout, slow)
        if delivered:
            self._deliver_all()
        self.simulation.run(switches)

    @precondition(lambda self: self.made)
    @rule(
        back=st.integers(0, 5),
        place=PLACES,
        op=st.sampled_from([ReduceOp.SUM, ReduceOp.MAX]),
        in_place=st.booleans(),
        session=st.booleans(),
        group=st.sampled_from(["world", "world", "pair"]),
        switches=SWITCHES,
    )
    def call_again(
        self,
        back: int,
        place: int,
        op: ReduceOp,
        in_place: bool,
        session: bool,
        group: str,
        switches: int | None,
    ) -> None:
        """An operation id that was used before, here or elsewhere, for the same thing or another."""
        operation_id = f"op{max(1, self.made - back)}"
        self._call(place, operation_id, op, in_place, session, group, 2.0, 0.0)
        self.simulation.run(switches)

    @precondition(lambda self: self.made)
    @rule(back=st.integers(0, 5), place=PLACES, switches=SWITCHES)
    def cancel(self, back: int, place: int, switches: int | None) -> None:
        member = self._at(place)
        calls = [it for it in self.history.calls if it.process is member and it.task is not None]
        if not calls:
            return
        call = calls[-1 - back % len(calls)]

        def cancel() -> None:
            assert call.task is not None
            call.task.cancel("a test")
            call.withdrawn |= call.task.cancelled()

        self.simulation.spawn(cancel, member, "cancel")
        self.simulation.run(switches)

    @rule(place=PLACES, switches=SWITCHES)
    def close_session(self, place: int, switches: int | None) -> None:
        member = self._at(place)

        def close() -> None:
            # It may not be open.
            with suppress(BridgeError):
                member.sidecar.close_session(SESSION)

        self.simulation.spawn(close, member, "close session")
        self.simulation.run(switches)

    @precondition(lambda self: self.network.moving())
    @rule(which=st.integers(0, 100), count=st.integers(1, 3), switches=SWITCHES)
    def deliver(self, which: int, count: int, switches: int | None) -> None:
        for turn in range(count):
            if moving := self.network.moving():
                self.network.deliver(moving[(which + turn) % len(moving)])
                self.simulation.run(switches)

    @rule()
    def deliver_all(self) -> None:
        self._deliver_all()

    @rule(
        trouble=st.sampled_from(["abort", "stop", "cut", "kill", "kill and lose"]),
        place=PLACES,
        switches=SWITCHES,
    )
    def trouble(self, trouble: str, place: int, switches: int | None) -> None:
        member = self._at(place)
        if trouble == "abort":
            self.simulation.spawn(lambda: self._abort(member), member, "abort")
        elif trouble == "stop":
            member.stopped = True
        elif trouble == "cut":
            if live := self.network.live():
                self.network.cut(live[place % len(live)])
        else:
            self.network.kill(member, lose=trouble == "kill and lose")
        self.simulation.run(switches)

    @precondition(lambda self: any(member.stopped for member in self.members))
    @rule(switches=SWITCHES)
    def resume(self, switches: int | None) -> None:
        self._resume()
        self.simulation.run(switches)

    @precondition(lambda self: len(self.forming) < 2)
    @rule(
        survivors_only=st.booleans(),
        resumed=st.sampled_from([True, True, False]),
        fault=st.sampled_from([None, None, None, *FAULTS]),
        switches=SWITCHES,
    )
    def form(self, survivors_only: bool, resumed: bool, fault: Fault | None, switches: int | None) -> None:
        """Form again, with replacements for the dead or without."""
        if resumed:
            self._resume()
        alive = [member for member in self.members if not member.dead]
        if survivors_only and len(alive) > 1:
            self.members = alive
        else:
            self.members = [self._member(it.rank) if it.dead else it for it in self.members]
        self._form(list(self.members), fault)
        self.simulation.run(switches)

    @rule(seconds=st.sampled_from([0.1, 0.1, 0.5, 1.5, 3.0, 8.0]))
    def pass_time(self, seconds: float) -> None:
        self.simulation.advance(seconds)

    @invariant()
    def nothing_is_wrong(self) -> None:
        if not self.members:
            return
        self.history.check()
        assert not self.network.faults, self.network.faults
        for forming in [it for it in self.forming if it.future.done()]:
            self.forming.remove(forming)
        by_group: dict[tuple[int, str], set[int]] = {}
        for member in [member for member in self.members if not member.dead]:
            generation = member.sidecar._generation
            if generation is not None and generation.error is None:
                assert generation.number == member.sidecar._seen, "an older generation still runs"
                for group in list(generation._groups.values()):
                    if group.membership is not None:
                        by_group.setdefault((generation.number, group.name), set()).add(
                            group.membership.sequence
                        )
        for group_name, sequences in by_group.items():
            assert max(sequences) - min(sequences) <= 1, f"{group_name}: sequences {sequences}"

    def teardown(self) -> None:
        try:
            if self.members:
                self._finish()
        finally:
            self.stack.close()

    def _finish(self) -> None:
        self._resume()
        self.simulation.advance(30.0)
        self._deliver_all()
        self.simulation.advance(30.0)
        self.nothing_is_wrong()
        assert not self.forming, "forming hangs"
        self.history.check_end()
        for member in [member for member in self.members if not member.dead]:
            self._check_member(member)

    def _check_member(self, member: Member) -> None:
        it = member.sidecar.describe()
        assert it.pending == 0, f"{member} has {it.pending} pending operations"
        refs = member.sidecar.refs
        for usage in refs.usage():
            kept = refs.page(usage.session_id, "", 1000)
            assert (usage.refs, usage.bytes) == (len(kept), sum(ref.spec.nbytes for ref in kept)), (
                "room leaks"
            )
            for ref in kept:
                held = element(refs.find(usage.session_id, ref.id).tensor)
                assert held == self.history.held[(member, ref.id)], f"{ref} of {member} changed by itself"

    def _member(self, rank: int) -> Member:
        self.made_members = getattr(self, "made_members", 0) + 1
        name = "abcdefghijklmnopqrstuvwxyz"[self.made_members % 26] + str(rank)
        member = Member(rank, self.size, name, self.hub, self.network)
        member.ref = member.full("", float(rank + 1))
        self.history.held[(member, member.ref.id)] = float(rank + 1)
        return member

    def _formed(self) -> bool:
        generations = [member.sidecar._generation for member in self.members if not member.frozen]
        return len(generations) == len(self.members) and all(it and not it.error for it in generations)

    def _deliver_all(self) -> None:
        self.simulation.run()
        while moving := self.network.moving():
            self.network.deliver(moving[0])
            self.simulation.run()

    def _abort(self, member: Member) -> None:
        number = member.sidecar.describe().number
        if member.sidecar.abort(number, "a test"):
            self.history.ended.add((member, number))

    def _at(self, place: int) -> Member:
        return self.members[place % len(self.members)]

    def _resume(self) -> None:
        for member in self.members:
            if member.stopped:
                member.stopped, member.resumed = False, self.simulation.now

    def _form(self, members: list[Member], fault: Fault | None) -> None:
        groups = [GroupDescription("pair", (len(members) - 1, 0))] if len(members) > 1 else []
        forming = begin_forming(self.simulation, members, fault, self._prepared, groups)
        self.forming.append(forming)

    def _prepared(self, member: Member, number: int) -> None:
        self.history.ended.update((member, older) for older in range(number))

    def _call(
        self,
        place: int,
        operation_id: str,
        op: ReduceOp,
        in_place: bool,
        session: bool,
        group: str,
        timeout: float,
        slow: float,
    ) -> None:
        if place >= len(self.members) or self.members[place].dead:
            return
        member = self.members[place]
        session_id = SESSION if session else ""
        call = Call(member, operation_id, op, group, in_place, session_id, timeout, slow, self.simulation.now)
        self.history.calls.append(call)
        self.simulation.spawn(lambda: self._serve(call), member, f"{operation_id} at {member}")

    def _serve(self, call: Call) -> None:
        member = call.process
        try:
            ref_id = self._ref(call)
            args = AllReduce(ref_id, call.op, call.in_place)
            how = TaskCall(call.group, call.operation_id, call.timeout, call.session_id, 0)
            call.called = self.simulation.now
            call.task = member.sidecar.submit(self.history.operation(call), args, how)
        except BridgeError as error:
            call.refused, call.first = error.failure, False
            return
        try:
            outcome = call.task.wait()
            call.answer = outcome if isinstance(outcome, Ref) else None
        except BridgeError as error:
            call.answer = error.failure
        call.answered = self.simulation.now

    def _ref(self, call: Call) -> str:
        """The rank's own tensor, or one of the session's, which is opened if need be."""
        member = call.process
        if not call.session_id or call.group == "pair":
            call.session_id = ""
            return member.ref.id
        member.sidecar.open_session(SESSION, 0.0)
        with suppress(BridgeError):
            return member.sidecar.refs.find(SESSION, member.in_session).ref.id
        member.in_session = member.full(SESSION, 10.0).id
        self.history.held[(member, member.in_session)] = 10.0
        return member.in_session


TestGang = GangMachine.TestCase
TestGang.settings = GANG


def test_when_all_processes_are_others_a_generation_of_the_same_number_is_another() -> None:
    state = GangMachine()
    try:
        state.begin(size=2, seed=0)
        state.call(
            absent=(),
            delivered=True,
            formed=True,
            group="world",
            in_place=False,
            odd=None,
            session=False,
            slow=0.0,
            switches=None,
            timeout=6.0,
        )
        for place in (0, 1):
            state.trouble(place=place, switches=None, trouble="kill")
        state.form(fault=None, resumed=True, survivors_only=False, switches=None)
        state.call_again(
            back=0, group="world", in_place=False, op=ReduceOp.SUM, place=0, session=False, switches=None
        )
        state.nothing_is_wrong()
        assert [it.generation for it in state.history.calls] == [1, 1, 1]
    finally:
        state.teardown()
