"""Two things at once: each pair of threads under many orders, and nothing else going on."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial

from tests.model.gang import Fault, Member, begin_forming
from tests.model.patches import patched
from tests.model.simulation import Simulation
from tests.support.simulated_sockets import Network

from rankbridge_server.backends.fake import FakeHub
from rankbridge_server.core.coordinator import ReduceOp
from rankbridge_server.core.errors import BridgeError, ErrorCode, Failure, Phase
from rankbridge_server.core.operations.reductions import AllReduce, all_reduce
from rankbridge_server.core.task import Call, Task

ORDERS = range(1, 401)


class Gang:
    """Formed ranks in a simulation."""

    def __init__(self, network: Network, size: int) -> None:
        self.simulation = network.simulation
        self.network = network
        self.tasks: list[Task] = []
        hub = FakeHub()
        self.members = [Member(rank, size, f"rank {rank}", hub, self.network) for rank in range(size)]
        for member in self.members:
            member.sidecar.open_session("s", 0.0)
            member.ref = member.full("s", 1.0)
        self.form()

    def form(self) -> None:
        forming = begin_forming(self.simulation, self.members, None, lambda *_: None, [])
        self.simulation.run()
        forming.future.result()

    def begin_call(self, member: Member, operation_id: str = "x") -> None:
        """A thread that calls all_reduce; what is not refused will be among `tasks`."""
        args = AllReduce(member.ref.id, ReduceOp.SUM, False)

        def submit() -> None:
            # It may come after the end of the generation.
            with suppress(BridgeError):
                call = Call("", operation_id, 2.0, "s", 0)
                self.tasks.append(member.sidecar.submit(all_reduce, args, call))

        self.simulation.spawn(submit, member)

    def begin_abort(self, member: Member) -> None:
        """A thread that ends the generation."""
        self.simulation.spawn(lambda: member.sidecar.abort(1, "a test"), member)

    def settle(self) -> None:
        """Deliver all messages."""
        self.simulation.run()
        while moving := self.network.moving():
            self.network.deliver(moving[0])
            self.simulation.run()


@contextmanager
def gang(size: int, seed: int) -> Iterator[Gang]:
    simulation = Simulation(seed)
    with patched(simulation) as network:
        try:
            yield Gang(network, size)
        finally:
            simulation.close()


def failure(task: Task) -> Failure:
    error = task.error
    assert isinstance(error, BridgeError)
    return error.failure


def test_a_call_that_comes_while_its_generation_ends_leaves_no_room_set_aside() -> None:
    for order in ORDERS:
        with gang(1, order) as it:
            member = it.members[0]
            it.begin_call(member)
            it.begin_abort(member)
            it.settle()
            kept = [usage.refs for usage in member.sidecar.refs.usage() if usage.session_id == "s"]
            made = len(member.sidecar.refs.page("s", "", 9))
            assert kept == [made], f"order {order}: room for {kept} refs is taken, by {made}"


def test_a_generation_that_ends_while_a_call_enters_admission_leaves_it_indefinite() -> None:
    for order in ORDERS:
        with gang(2, order) as it:
            member = it.members[0]
            it.begin_call(member)
            it.simulation.run(order % 25)
            it.begin_abort(member)
            it.settle()
            for task in it.tasks:
                why = failure(task)
                assert why.indefinite is (why.phase is not Phase.CHECK), f"order {order}: {why}"


def test_a_session_closed_while_the_data_moves_leaves_its_call_indefinite() -> None:
    with gang(2, 0) as it:
        first, second = it.members
        it.begin_call(first)
        it.simulation.run()
        it.begin_call(second)
        it.simulation.run()
        while not it.network.connections[0].down.queue:
            it.network.deliver(it.network.moving()[0])
            it.simulation.run()
        # The leader has GO and waits in the backend for the other, whose verdict is on its way.
        it.simulation.spawn(lambda: first.sidecar.close_session("s"), first)
        it.settle()
        closed, other = it.tasks
        assert other.error is None
        assert failure(closed).code is ErrorCode.UNKNOWN_SESSION
        assert failure(closed).indefinite


def test_a_generation_that_is_prepared_while_another_is_committed_is_the_only_one_that_may_run() -> None:
    for order in ORDERS[:150]:
        with gang(2, order) as it:
            first = begin_forming(it.simulation, it.members, None, lambda *_: None, [])
            it.simulation.run(order % 60)
            fault = Fault("commit", 0, after=False)
            second = begin_forming(it.simulation, it.members, fault, lambda *_: None, [])
            it.settle()
            it.simulation.advance(10.0)
            it.settle()
            assert first.future.done()
            assert second.future.done()
            for member in it.members:
                state = member.sidecar.describe()
                running = member.sidecar._generation
                if running is not None and running.error is None:
                    assert running.number == member.sidecar._seen, (
                        f"order {order}: {running.number} still runs"
                    )
                assert state.pending == 0


def test_a_call_withdrawn_while_it_is_queued_never_comes_to_the_leader() -> None:
    for order in ORDERS[:100]:
        with gang(2, order) as it:
            first, second = it.members
            it.begin_call(second)
            it.simulation.run()
            it.begin_call(second, "queued")
            it.simulation.run()
            queued = it.tasks[-1]
            it.simulation.spawn(partial(queued.cancel, "a test"), second)
            it.begin_call(first)
            it.settle()
            it.begin_call(first, "queued")
            it.settle()
            assert failure(queued).code is ErrorCode.CANCELLED
            assert not failure(queued).indefinite
            leader = it.tasks[-1]
            assert not leader.done, f"order {order}: the leader was answered, so the other came"
            it.simulation.advance(3.0)
            assert failure(leader).code is ErrorCode.PEER_MISSING
