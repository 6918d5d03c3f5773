"""A gang of real ranks in a simulation: fake backend, simulated sockets, and a forming that can fail anywhere."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Future, TimeoutError as FutureTimeoutError
from dataclasses import dataclass
from typing import Any, TypeVar

from tests.model.simulation import Process, Simulation, answer_of
from tests.support.simulated_sockets import Network

from rankbridge_server.backends.fake import FakeBackend, FakeHub
from rankbridge_server.core.coordinator import GroupDescription
from rankbridge_server.core.dtype import Dtype
from rankbridge_server.core.errors import BridgeError, ErrorCode
from rankbridge_server.core.groups.forming import Formed, form
from rankbridge_server.core.groups.preparation import RankAddress
from rankbridge_server.core.groups.regrouping import PeerState
from rankbridge_server.core.limits import Limits
from rankbridge_server.core.rank import Description, Identity, Rank, State
from rankbridge_server.core.refs.refs import Ref
from rankbridge_server.core.refs.tensors import Full, TensorSpec

DATA_TIMEOUT = 3.0
FORM_TIMEOUT = 4.0

Answer = TypeVar("Answer")


class Member(Process):
    """A process with a sidecar. `resumed`: when it last ran again after a stop."""

    def __init__(self, rank: int, world_size: int, name: str, hub: FakeHub, network: Network) -> None:
        super().__init__(rank, name)
        self.simulation = network.simulation
        self.resumed = float("-inf")
        self.ref: Ref
        self.in_session = "none"
        self.sidecar = Rank(
            Identity(rank=rank, world_size=world_size, local_rank=rank),
            FakeBackend(hub),
            network.maker(self),
            limits=Limits(max_bytes=1 << 20),
            data_timeout=DATA_TIMEOUT,
        )

    def full(self, session_id: str, value: float) -> Ref:
        """A tensor of one value."""
        spec = TensorSpec(Dtype.FLOAT32, (2,), "cpu")
        with self.sidecar.refs.reserved(session_id, spec) as slot:
            return slot.fill(self.sidecar.backend.tensors.create(spec, Full(value)))


@dataclass
class Fault:
    """One step of forming that fails for whoever forms, before or `after` the rank has done it."""

    step: str
    rank: int
    after: bool


class SimulatedPeer:
    """A rank as forming reaches it: every call is a thread of that rank, and may go unanswered."""

    def __init__(
        self,
        simulation: Simulation,
        member: Member,
        place: int,
        fault: Fault | None,
        prepared: Callable[[Member, int], None],
    ) -> None:
        self._simulation = simulation
        self._member = member
        self._place = place
        self._fault = fault
        self._prepared = prepared

    def describe(self, timeout: float) -> PeerState:
        it: Description = self._ask("describe", self._member.sidecar.describe, timeout)
        was_formed = it.state in (State.FORMED, State.OVER)
        groups = tuple(GroupDescription(group.name, group.ranks) for group in it.groups)
        return PeerState(it.seen, it.number, it.rank if was_formed else None, groups)

    def prepare(
        self, number: int, rank: int, world_size: int, groups: Sequence[GroupDescription], timeout: float
    ) -> RankAddress:
        def prepare() -> RankAddress:
            address = self._member.sidecar.prepare(number, rank, world_size, groups)
            self._prepared(self._member, number)
            return address

        return self._ask("prepare", prepare, timeout)

    def commit(self, number: int, addresses: Sequence[RankAddress], secret: bytes, timeout: float) -> None:
        self._ask("commit", lambda: self._member.sidecar.commit(number, addresses, secret, timeout), timeout)

    def abort(self, number: int, reason: str, timeout: float) -> None:
        self._ask("abort", lambda: self._member.sidecar.abort(number, reason), timeout)

    def _ask(self, step: str, function: Callable[[], Answer], timeout: float) -> Answer:
        fails = self._fault is not None and (self._fault.step, self._fault.rank) == (step, self._place)
        if self._member.dead or (fails and self._fault is not None and not self._fault.after):
            raise BridgeError.of(ErrorCode.FORMING_FAILED, f"{step} does not reach {self._member}")
        future: Future[Any] = answer_of(self._simulation, function, self._member)
        try:
            answer: Answer = future.result(timeout)
        except FutureTimeoutError:
            raise BridgeError.of(
                ErrorCode.FORMING_FAILED, f"{step} of {self._member} takes too long"
            ) from None
        if fails:
            raise BridgeError.of(ErrorCode.FORMING_FAILED, f"the answer of {self._member} to {step} is lost")
        return answer


@dataclass(eq=False)
class Forming:
    """One attempt to form; `future` gives what became of it."""

    members: list[Member]
    fault: Fault | None
    future: Future[Formed]


def begin_forming(
    simulation: Simulation,
    members: list[Member],
    fault: Fault | None,
    prepared: Callable[[Member, int], None],
    groups: Sequence[GroupDescription],
) -> Forming:
    """Form the next generation of `members`, which become ranks 0, 1, ..."""
    peers = [SimulatedPeer(simulation, it, place, fault, prepared) for place, it in enumerate(members)]

    def run() -> Formed:
        return form(peers, groups, FORM_TIMEOUT, forget_groups=True)

    return Forming(members, fault, answer_of(simulation, run))
