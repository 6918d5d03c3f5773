"""Graphs on NCCL's stand-in: captured once, launched from then on, by all members or by none."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, ClassVar, cast

import pytest
import torch
from tests.support.local_gang import LocalGang, a_call
from tests.support.nccl_on_cpu import CpuEngine, NcclOnCpu, members_on_cpu
from tests.support.sides_on_cpu import CpuSide, Refused
from tests.support.waiting import until

from rankbridge_server.backends.nccl import NcclBackend, cuda_graph
from rankbridge_server.core.coordinator import Captured, Capturing, Coordinator, ReduceOp
from rankbridge_server.core.errors import BridgeError, ErrorCode
from rankbridge_server.core.operations.agreements import Barrier, barrier
from rankbridge_server.core.operations.all_to_all import AllToAll, all_to_all
from rankbridge_server.core.operations.gathers import AllGather, Gather, GatherLayout, all_gather, gather
from rankbridge_server.core.operations.moves import Broadcast, Scatter, broadcast, scatter
from rankbridge_server.core.operations.reductions import (
    AllReduce,
    Reduce,
    ReduceScatter,
    all_reduce,
    reduce,
    reduce_scatter,
)
from rankbridge_server.core.programs.program import Replay
from rankbridge_server.core.programs.replays import replay
from rankbridge_server.core.refs.refs import Ref
from rankbridge_server.core.refs.tensors import Arange

TIMEOUT_S = 60.0
SIZE = 3


class Gang:
    """A gang whose ranks have this engine each, and what they have done on it."""

    def __init__(self, size: int) -> None:
        self.engines = [CpuEngine() for _ in range(size)]
        backends = [NcclBackend(rank, engine) for rank, engine in enumerate(self.engines)]
        self.local = LocalGang(size, data_timeout=TIMEOUT_S, backends=backends)

    @property
    def launched(self) -> list[int]:
        """How many graphs were, by rank."""
        return [sum(side.launched for side in engine.sides) for engine in self.engines]

    @property
    def captured(self) -> list[int]:
        """How often graphs were, by rank."""
        return [sum(side.captured for side in engine.sides) for engine in self.engines]

    @property
    def begun(self) -> list[int]:
        """How many operations of NCCL were, in no graph."""
        return [sum(group.begun for group in engine.groups) for engine in self.engines]

    @property
    def groups(self) -> list[NcclOnCpu]:
        """All that were ever formed."""
        return [group for engine in self.engines for group in engine.groups]

    @property
    def sides(self) -> list[CpuSide]:
        """All that there ever were."""
        return [side for engine in self.engines for side in engine.sides]


@pytest.fixture
def nccl() -> Iterator[Gang]:
    it = Gang(SIZE)
    yield it
    close(it.local)
    for group in it.groups:
        until(group.aborted.is_set)
    # Whatever happened, no communicator was ever given up before the graphs that hold it.
    assert not any(group.held_up for group in it.groups)


def close(gang: LocalGang) -> None:
    for rank in gang.ranks:
        rank.close("the test is over")


def record(gang: LocalGang, name: str, calls: Callable[[], object]) -> None:
    for rank in gang.ranks:
        rank.graphs.begin("", "world", name)
    calls()
    for rank in gang.ranks:
        rank.graphs.end("", "world")


def run(gang: LocalGang, operation: Any, args: Sequence[Any]) -> list[Any]:
    outcomes = gang.run(operation, args, timeout=TIMEOUT_S)
    assert not [it for it in outcomes if isinstance(it, Exception)], outcomes
    return outcomes


def replayed(gang: LocalGang, *names: str) -> list[Any]:
    """`names`: of each rank's graph, or of all ranks'."""
    size = len(gang.ranks)
    return run(gang, replay, [Replay(name) for name in (names * size)[:size]])


def add(gang: LocalGang, refs: Sequence[Ref], *, in_place: bool = False) -> list[Any]:
    return run(gang, all_reduce, [AllReduce(ref.id, ReduceOp.SUM, in_place) for ref in refs])


def refill(gang: LocalGang, refs: Sequence[Ref], turn: int) -> None:
    """Other tensors, in other memory."""
    for ref in refs:
        rank = gang.ranks[ref.rank]
        made = rank.backend.tensors.create(ref.spec, Arange(100.0 * turn + 10 * ref.rank, 1))
        rank.refs.find("", ref.id).tensor = made


def floats(gang: LocalGang, outcome: Any) -> Any:
    if isinstance(outcome, list):
        return [floats(gang, it) for it in outcome]
    return outcome if outcome is None else gang.floats(outcome)


class Program:
    """Every collective, on tensors of other values in every turn; recorded in a gang as graph "all"."""

    def __init__(self, gang: LocalGang) -> None:
        self.gang = gang
        self.size = len(gang.ranks)
        self.matrices = gang.full(1, (2, 2 * self.size))
        self.parts = [self.matrices[0], *gang.full(2, (2, 2))[1:]]
        self.changed = gang.full(3, (2,))
        self.lines = [gang.full_on(rank, 4, (rank,)) for rank in range(self.size)]
        record(gang, "all", self._run)

    def turn(self, number: int) -> Any:
        """Replay it on other values; gives all results."""
        for refs in (self.matrices, self.parts, self.changed, self.lines):
            refill(self.gang, refs, number)
        return floats(self.gang, replayed(self.gang, "all"))

    def _run(self) -> None:
        gang, size, last = self.gang, self.size, self.size - 1
        add(gang, self.matrices)
        add(gang, self.changed, in_place=True)
        run(gang, barrier, [Barrier()] * size)
        run(gang, broadcast, [Broadcast(it.id, last, False) for it in self.matrices])
        run(gang, scatter, [Scatter(it.id, 0, 1) for it in self.parts])
        run(gang, gather, [Gather(it.id, last, layout=GatherLayout.LIST) for it in self.matrices])
        run(gang, all_gather, [AllGather(it.id, 1) for it in self.matrices])
        run(gang, all_gather, [AllGather(it.id, layout=GatherLayout.STACKED) for it in self.matrices])
        run(gang, all_gather, [AllGather(it.id, ragged=True) for it in self.lines])
        run(gang, reduce, [Reduce(it.id, ReduceOp.MAX, 0) for it in self.matrices])
        uneven = (*[1] * last, size + 1)
        for sizes in ((), uneven):
            run(gang, reduce_scatter, [ReduceScatter(it.id, ReduceOp.SUM, 1, sizes) for it in self.matrices])
        run(gang, all_to_all, [AllToAll(it.id, 1) for it in self.matrices])
        # All send all they have to the last one.
        sent = (*[0] * last, 2 * size)
        received = [*[(0,) * size] * last, (2 * size,) * size]
        given = zip(self.matrices, received, strict=True)
        run(gang, all_to_all, [AllToAll(it.id, 1, sent, its) for it, its in given])


@pytest.mark.parametrize("size", [1, 2, 3])
def test_every_collective_gives_in_launches_what_it_gives_alone(size: int) -> None:
    nccl, fake = Gang(size), LocalGang(size, data_timeout=TIMEOUT_S)
    try:
        one, other = Program(nccl.local), Program(fake)
        for turn in range(1, 5):
            assert one.turn(turn) == other.turn(turn)
            assert nccl.launched == [turn - 1] * size
        assert nccl.captured == [1] * size
    finally:
        close(nccl.local)
        close(fake)


def test_a_launch_begins_nothing_of_nccl_and_is_one_operation(nccl: Gang) -> None:
    gang = nccl.local
    inputs = gang.full(1)
    sums: list[Any] = []
    record(gang, "g", lambda: sums.extend(add(gang, inputs)))
    assert replayed(gang, "g") == [[ref] for ref in sums]
    begun, sequence = nccl.begun, gang.ranks[0].group("world").sequence
    for turn in range(1, 6):
        refill(gang, inputs, turn)
        assert replayed(gang, "g") == [[ref] for ref in sums]
        expected = [sum(100 * turn + 10 * rank + at for rank in range(SIZE)) for at in range(2)]
        assert [gang.floats(ref) for ref in sums] == [expected] * SIZE
    assert (nccl.begun, nccl.launched, nccl.captured) == (begun, [5] * SIZE, [1] * SIZE)
    assert gang.ranks[0].group("world").sequence == sequence + 5
    # A rank gives back the room that it had set aside once it has answered.
    until(lambda: all(sum(usage.refs for usage in rank.refs.usage()) == 2 for rank in gang.ranks))


def test_what_a_launch_gave_does_not_change_with_the_next(nccl: Gang) -> None:
    gang = nccl.local
    inputs = gang.full(1)
    sums: list[Any] = []
    record(gang, "g", lambda: sums.extend(add(gang, inputs)))
    replayed(gang, "g")
    replayed(gang, "g")
    cell = gang.ranks[0].refs.find("", sums[0].id)
    before = cast(torch.Tensor, cell.tensor)
    refill(gang, inputs, 1)
    replayed(gang, "g")
    assert before.tolist() == [3, 3]
    assert gang.floats(sums[0]) == [330, 333]


def test_collectives_in_place_go_on_from_what_is_there(nccl: Gang) -> None:
    gang = nccl.local
    refs = gang.full(1)
    record(gang, "g", lambda: add(gang, refs, in_place=True))
    for turn in range(1, 5):
        assert replayed(gang, "g") == [[ref] for ref in refs]
        assert [gang.floats(ref) for ref in refs] == [[3 ** (turn + 1)] * 2] * SIZE
    assert nccl.launched == [3] * SIZE


def test_a_graph_is_captured_anew_in_every_generation(nccl: Gang) -> None:
    gang = nccl.local
    inputs = gang.full(1)
    sums: list[Any] = []
    record(gang, "g", lambda: sums.extend(add(gang, inputs)))
    for generation in range(3):
        groups = nccl.groups
        for turn in range(3):
            refill(gang, inputs, 3 * generation + turn)
            replayed(gang, "g")
            expected = 300 * (3 * generation + turn) + 30
            assert [gang.floats(ref) for ref in sums] == [[expected, expected + 3]] * SIZE
        assert nccl.captured == [generation + 1] * SIZE
        assert nccl.launched == [2 * (generation + 1)] * SIZE
        gang.form()
        for group in groups:
            until(group.aborted.is_set)
            assert not group.holders


@pytest.mark.parametrize("captures", [False, None], ids=["fails", "impossible"])
def test_one_member_that_cannot_capture_keeps_none_from_the_replay(nccl: Gang, captures: bool | None) -> None:
    gang = nccl.local
    nccl.engines[1].captures = captures
    inputs = gang.full(1)
    sums: list[Any] = []
    record(gang, "g", lambda: sums.extend(add(gang, inputs)))
    for turn in range(1, 5):
        refill(gang, inputs, turn)
        assert replayed(gang, "g") == [[ref] for ref in sums]
        assert [gang.floats(ref) for ref in sums] == [[300 * turn + 30, 300 * turn + 33]] * SIZE
    assert nccl.launched == [0] * SIZE
    # Nobody tried again, and nobody keeps what is of no use.
    assert nccl.captured == [1, 0, 1]
    assert not any(group.holders for group in nccl.groups)
    # The next generation may.
    nccl.engines[1].captures = True
    gang.form()
    replayed(gang, "g")
    replayed(gang, "g")
    assert nccl.launched == [1] * SIZE


def test_members_launch_only_what_they_captured_together(nccl: Gang) -> None:
    gang = nccl.local
    inputs = gang.full(1)
    sums: dict[str, list[Any]] = {}
    for name in ("a", "b"):
        record(gang, name, lambda name=name: sums.update({name: add(gang, inputs)}))  # type: ignore[misc]

    def turn(number: int, *names: str) -> None:
        refill(gang, inputs, number)
        replayed(gang, *names)
        for ref in [sums[name][rank] for rank, name in enumerate((names * SIZE)[:SIZE])]:
            assert gang.floats(ref) == [300 * number + 30, 300 * number + 33]

    for number, (names, launched) in enumerate(
        [
            (("a",), 0),
            (("a",), 1),
            (("b",), 1),
            (("b",), 2),
            # The same collectives, so that they may go together, but not what was captured of them.
            (("a", "b", "b"), 2),
            (("a", "b", "b"), 3),
            (("a",), 3),
            (("a",), 4),
            (("b",), 4),
            (("b",), 5),
        ]
    ):
        turn(number, *names)
        assert nccl.launched == [launched] * SIZE


def test_what_is_captured_goes_with_its_graph(nccl: Gang) -> None:
    gang = nccl.local
    inputs = gang.full(1)
    record(gang, "g", lambda: add(gang, inputs))
    replayed(gang, "g")
    assert any(group.holders for group in nccl.groups)
    for rank in gang.ranks:
        rank.graphs.release("", "g")
    # The lane tells the end of the last replay before it lets go of it.
    until(lambda: not any(group.holders for group in nccl.groups))


def test_a_released_ref_is_missed_by_name(nccl: Gang) -> None:
    gang = nccl.local
    inputs = gang.full(1)
    record(gang, "g", lambda: add(gang, inputs))
    replayed(gang, "g")
    gang.ranks[0].refs.release("", [inputs[0].id])
    (outcome,) = gang.run(replay, [Replay("g"), None, None], timeout=TIMEOUT_S)
    assert isinstance(outcome, BridgeError)
    assert outcome.failure.code is ErrorCode.RELEASED_REF


def test_the_end_of_a_generation_ends_what_was_launched_and_leaves_refs(nccl: Gang) -> None:
    gang = nccl.local
    inputs = gang.full(1)
    sums: list[Any] = []
    record(gang, "g", lambda: sums.extend(add(gang, inputs)))
    replayed(gang, "g")
    refill(gang, inputs, 1)
    for side in nccl.sides:
        side.going.clear()
    tasks = [rank.submit(replay, Replay("g"), a_call(timeout=TIMEOUT_S)) for rank in gang.ranks]
    until(lambda: nccl.launched == [1] * SIZE)
    gang.ranks[2].close("it must")
    for task in tasks:
        with pytest.raises(BridgeError) as error:
            task.wait()
        assert error.value.failure.indefinite
    for side in nccl.sides:
        side.going.set()
    assert [gang.floats(ref) for ref in sums] == [[3, 3]] * SIZE
    gang.form()
    for _ in range(2):
        replayed(gang, "g")
        assert [gang.floats(ref) for ref in sums] == [[330, 333]] * SIZE
    assert nccl.launched == [2] * SIZE


# --- channels ------------------------------------------------------------------------------------------------


class Pair:
    """Two members, and a sum of theirs that each has captured."""

    def __init__(self, coordinators: Sequence[Coordinator], given: Sequence[torch.Tensor]) -> None:
        self.coordinators = coordinators
        self.given = given
        # What is captured has run before.
        self.both(lambda rank: self.add(rank, given[rank]))
        captured = self.both(self.capture)
        assert None not in captured
        self.captured = cast(list[Captured], captured)

    def capture(self, rank: int) -> Captured | None:
        coordinator = self.coordinators[rank]
        assert isinstance(coordinator, Capturing)
        return coordinator.capture(
            [self.given[rank]], lambda tensors: [self.add(rank, tensors[0])], TIMEOUT_S
        )

    def add(self, rank: int, tensor: object, timeout: float = TIMEOUT_S) -> object:
        return self.coordinators[rank].all_reduce(tensor, ReduceOp.SUM, timeout)

    def replay(self, rank: int, timeout: float = TIMEOUT_S) -> list[list[float]]:
        results = self.captured[rank].replay([self.given[rank]], timeout)
        return [cast(torch.Tensor, it).tolist() for it in results]

    def both(self, call: Callable[[int], Any]) -> list[Any]:
        with ThreadPoolExecutor(2) as threads:
            return list(threads.map(call, range(2)))


class CpuPair(Pair):
    """And their engines."""

    def __init__(self, coordinators: Sequence[Coordinator], engines: Sequence[CpuEngine]) -> None:
        super().__init__(coordinators, [torch.full((2,), float(rank + 1)) for rank in range(2)])
        self.engines = engines


@pytest.fixture
def pair() -> Iterator[CpuPair]:
    with members_on_cpu(2) as (members, engines):
        yield CpuPair(members.coordinators, engines)
    assert not any(group.held_up for engine in engines for group in engine.groups)


def test_operations_and_launches_take_turns(pair: CpuPair) -> None:
    for _ in range(3):
        assert pair.both(pair.replay) == [[[3, 3]]] * 2
        sums = pair.both(lambda rank: pair.add(rank, pair.given[rank]))
        assert [cast(torch.Tensor, it).tolist() for it in sums] == [[3, 3]] * 2


def test_a_launch_that_does_not_end_fails_in_time(pair: CpuPair) -> None:
    with pytest.raises(BridgeError, match=r"NCCL failed: a graph did not end in 0\.2 s") as error:
        pair.replay(0, timeout=0.2)
    failure = error.value.failure
    assert (failure.code, failure.indefinite) == (ErrorCode.BACKEND_FAILED, True)
    group = pair.engines[0].groups[0]
    assert group.aborted.is_set()
    assert not group.holders
    with pytest.raises(BridgeError, match="the group was closed"):
        pair.replay(0)


def test_what_is_launched_when_the_group_is_closed_fails_at_once(pair: CpuPair) -> None:
    with ThreadPoolExecutor(1) as thread:
        running = thread.submit(pair.replay, 0)
        until(lambda: pair.engines[0].sides[0].launched == 1)
        pair.coordinators[0].close()
        with pytest.raises(BridgeError, match="the group was closed"):
            running.result(TIMEOUT_S)


def test_an_operation_beside_graphs_still_fails_in_time(pair: CpuPair) -> None:
    # Gloo, which stands in for NCCL, has the same timeout, and may be the one to tell.
    with pytest.raises(BridgeError, match=r"NCCL failed: .*[Tt]imed out"):
        pair.add(0, pair.given[0], timeout=0.2)
    assert not pair.engines[0].groups[0].holders


def test_an_operation_beside_graphs_that_nccl_fails_says_why(pair: CpuPair) -> None:
    class Broken:
        def wait(self) -> None:
            raise RuntimeError("remote process exited")

    class BrokenGloo:
        def allreduce(self, *given: object) -> Broken:
            return Broken()

    pair.engines[0].groups[0]._gloo = cast(Any, BrokenGloo())
    with pytest.raises(BridgeError, match="NCCL failed: remote process exited"):
        pair.add(0, pair.given[0])
    assert not pair.engines[0].groups[0].holders


def test_a_capture_that_does_not_end_is_ended(pair: CpuPair) -> None:
    coordinator = cast(Capturing, pair.coordinators[0])
    aborted = pair.engines[0].groups[0].aborted

    def enter(tensors: Sequence[object]) -> Sequence[object]:
        aborted.wait(TIMEOUT_S)
        return [pair.add(0, tensors[0])]

    with pytest.raises(BridgeError, match=r"it did not begin in 0\.2 s"):
        coordinator.capture([pair.given[0]], enter, 0.2)
    assert aborted.is_set()


def test_what_is_captured_while_the_group_is_closed_is_not_kept(pair: CpuPair) -> None:
    coordinator = cast(Capturing, pair.coordinators[0])
    inside = threading.Event()
    group = pair.engines[0].groups[0]

    def enter(tensors: Sequence[object]) -> Sequence[object]:
        given = [pair.add(0, tensors[0])]
        inside.set()
        group.aborted.wait(TIMEOUT_S)
        return given

    with ThreadPoolExecutor(1) as thread:
        running = thread.submit(coordinator.capture, [pair.given[0]], enter, TIMEOUT_S)
        assert inside.wait(TIMEOUT_S)
        pair.coordinators[0].close()
        with pytest.raises(BridgeError, match="the group was closed"):
            running.result(TIMEOUT_S)
    assert not group.holders


@pytest.mark.parametrize(
    "spoil",
    [
        lambda channel, tensor: channel._side.synchronize(),
        lambda channel, tensor: channel._side.idle(),
        lambda channel, tensor: tensor.sum().item(),
    ],
    ids=["waits for the side", "asks the side", "reads an element"],
)
def test_what_cannot_be_captured_leaves_all_as_it_was(
    pair: CpuPair, spoil: Callable[[Any, torch.Tensor], object]
) -> None:
    def capture(rank: int) -> Captured | None:
        coordinator: Any = pair.coordinators[rank]

        def enter(tensors: Sequence[object]) -> Sequence[object]:
            result = pair.add(rank, tensors[0])
            spoil(coordinator._collectives, cast(torch.Tensor, result))
            return [result]

        captured: Captured | None = coordinator.capture([pair.given[rank]], enter, TIMEOUT_S)
        return captured

    assert pair.both(capture) == [None, None]
    assert pair.both(pair.replay) == [[[3, 3]]] * 2
    sums = pair.both(lambda rank: pair.add(rank, pair.given[rank]))
    assert [cast(torch.Tensor, it).tolist() for it in sums] == [[3, 3]] * 2


# --- CUDA's own, as torch has them ----------------------------------------------------------------------------


class TorchsGraph:
    """A CUDAGraph by its interface; `fails` where it is told to."""

    fails = ""
    asked: ClassVar[list[tuple[object, ...]]] = []

    def __init__(self) -> None:
        self.ended = False

    def capture_begin(self, pool: object, capture_error_mode: str) -> None:
        self.asked.append(("begin", pool, capture_error_mode))
        if self.fails == "begin":
            raise RuntimeError("no begin")

    def capture_end(self) -> None:
        self.asked.append(("end",))
        if self.fails or self.ended:
            raise RuntimeError("no end")
        self.ended = True

    def replay(self) -> None:
        self.asked.append(("replay",))

    def reset(self) -> None:
        self.asked.append(("reset",))


@pytest.fixture
def torchs_graph(monkeypatch: pytest.MonkeyPatch) -> type[TorchsGraph]:
    def recorded(name: str) -> Callable[..., None]:
        return lambda *given: TorchsGraph.asked.append((name, *given))

    monkeypatch.setattr(TorchsGraph, "asked", [])
    monkeypatch.setattr(TorchsGraph, "fails", "")
    monkeypatch.setattr(torch.cuda, "CUDAGraph", TorchsGraph)
    monkeypatch.setattr(torch.cuda, "graph_pool_handle", lambda: (0, 5))
    for name in ("_cuda_endAllocateToPool", "_cuda_releasePool"):
        monkeypatch.setattr(torch._C, name, recorded(name), raising=False)
    monkeypatch.setattr(cuda_graph, "_failed", [])
    return TorchsGraph


BEGIN = ("begin", (0, 5), "thread_local")
FREED = [("_cuda_endAllocateToPool", 1, (0, 5)), ("_cuda_releasePool", 1, (0, 5)), ("reset",)]


def test_only_the_capturing_thread_is_kept_from_what_is_unsafe(torchs_graph: type[TorchsGraph]) -> None:
    graph = cuda_graph.CudaGraph(torch.device("cuda", 1))
    with graph.capturing():
        pass
    graph.launch()
    graph.reset()
    assert torchs_graph.asked == [BEGIN, ("end",), ("replay",), ("reset",)]
    assert cuda_graph._failed == []


@pytest.mark.parametrize("fails", ["begin", "inside", "end"])
def test_a_capture_that_fails_ends_and_gives_its_memory_back(
    torchs_graph: type[TorchsGraph], fails: str
) -> None:
    torchs_graph.fails = fails
    graph = cuda_graph.CudaGraph(torch.device("cuda", 1))
    with pytest.raises(RuntimeError, match=f"no {fails}"), graph.capturing():  # noqa: PT012
        if fails == "inside":
            raise RuntimeError("no inside")
    ends = [("end",), ("end",)] if fails == "end" else [("end",)]
    assert torchs_graph.asked == [BEGIN, *ends, *FREED]
    # torch may yet ask it.
    assert len(cuda_graph._failed) == 1


@pytest.mark.parametrize(
    ("version", "can"),
    [("2.6.0", False), ("2.7.1+cu126", False), ("2.8.0", True), ("2.13.0+cu130", True), ("3.0.0a0", True)],
)
def test_torch_that_waits_for_a_watchdog_captures_nothing(
    monkeypatch: pytest.MonkeyPatch, version: str, can: bool
) -> None:
    monkeypatch.setattr(torch, "__version__", version)
    assert cuda_graph.can_capture() is can


# --- the stand-in's own strictness ---------------------------------------------------------------------------


def test_the_stand_in_does_nothing_when_it_captures_and_all_in_a_launch() -> None:
    side = CpuSide()
    graph = side.graph()
    assert graph is not None
    given = torch.tensor([1.0, 2.0])
    with side.current(), graph.capturing():
        doubled = torch.cat([given.clone(), given * 2])
    assert doubled.tolist() != [1, 2, 2, 4]
    for value in (3.0, 4.0):
        given.fill_(value)
        with side.current():
            graph.launch()
        side.synchronize()
        assert doubled.tolist() == [value, value, 2 * value, 2 * value]
    graph.reset()
    with side.current(), pytest.raises(Refused, match="nothing to launch"):
        graph.launch()


def test_the_stand_in_refuses_what_cuda_refuses() -> None:
    side = CpuSide()
    for act, what in (
        (side.synchronize, "not permitted"),
        (side.idle, "not permitted"),
        (lambda: torch.ones(1).item(), "not permitted"),
    ):
        graph = side.graph()
        assert graph is not None
        with pytest.raises(Refused, match=what), side.current(), graph.capturing():
            act()
    graph, other = side.graph(), side.graph()
    assert graph is not None
    assert other is not None
    with side.current(), graph.capturing(), pytest.raises(Refused, match="cannot begin"), other.capturing():
        pass


def test_the_stand_in_refuses_work_that_was_not_joined_or_was_waited_for(pair: CpuPair) -> None:
    side, group = pair.engines[0].sides[0], pair.engines[0].groups[0]
    options = torch._C._distributed_c10d.AllreduceOptions()
    for use, what in (
        (lambda work: None, "unjoined"),
        (lambda work: work.is_completed(), "not permitted"),
        (lambda work: work.wait(None), "not permitted"),
    ):
        graph = side.graph()
        assert graph is not None
        with pytest.raises(Refused, match=what), side.current(), graph.capturing():
            use(group.allreduce([torch.ones(2)], options))
        del graph


def test_the_stand_in_refuses_a_launch_without_a_communicator(pair: CpuPair) -> None:
    side, group = pair.engines[0].sides[0], pair.engines[0].groups[0]
    graph = side.graph()
    assert graph is not None
    options = torch._C._distributed_c10d.AllreduceOptions()
    with side.current(), graph.capturing():
        group.allreduce([torch.ones(2)], options).synchronize()
    group.aborted.set()
    with side.current(), pytest.raises(Refused, match="communicator is gone"):
        graph.launch()
    graph.reset()
