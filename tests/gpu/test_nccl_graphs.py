"""CUDA graphs of collectives: what a launch gives, that it is one, and what else goes on beside it."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import pytest
import torch
from tests.support.devices import IN_PROCESS
from tests.support.local_gang import LocalGang
from tests.unit.backends.test_nccl_graphs import Program, add, close, floats, record, refill, replayed, run

from rankbridge_server.backends.nccl import NcclBackend
from rankbridge_server.backends.nccl.channel import Channel
from rankbridge_server.backends.nccl.cuda_graph import CudaGraph, can_capture
from rankbridge_server.core.dtype import Dtype
from rankbridge_server.core.operations.agreements import Barrier, barrier
from rankbridge_server.core.refs.tensors import Full, TensorSpec

pytestmark = pytest.mark.gpu

DATA_TIMEOUT_S = 60.0


@pytest.fixture(params=range(1, 1 + IN_PROCESS), ids=lambda size: f"nccl{size}")
def gang(request: pytest.FixtureRequest) -> Iterator[LocalGang]:
    size: int = request.param
    it = LocalGang(size, data_timeout=DATA_TIMEOUT_S, backends=[NcclBackend(rank) for rank in range(size)])
    yield it
    close(it)


@pytest.fixture
def done(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Of every graph that is launched "launched", of every operation of NCCL, captured or not, "begun"."""
    done: list[str] = []
    launch, begin = CudaGraph.launch, Channel.run

    def counting_launch(self: CudaGraph) -> None:
        done.append("launched")
        launch(self)

    def counting_run(self: Channel, *given: Any) -> None:
        done.append("begun")
        begin(self, *given)

    monkeypatch.setattr(CudaGraph, "launch", counting_launch)
    monkeypatch.setattr(Channel, "run", counting_run)
    return done


def test_this_torch_captures() -> None:
    assert can_capture()


def test_every_collective_gives_in_launches_what_it_gives_alone(gang: LocalGang, done: list[str]) -> None:
    size = len(gang.ranks)
    fake = LocalGang(size)
    try:
        one, other = Program(gang), Program(fake)
        assert one.turn(1) == other.turn(1)
        assert done.count("launched") == 0
        begun = done.count("begun")
        for turn in range(2, 12):
            assert one.turn(turn) == other.turn(turn)
        assert (done.count("launched"), done.count("begun")) == (10 * size, begun)
    finally:
        close(fake)


def test_launches_take_turns_with_other_operations(gang: LocalGang, done: list[str]) -> None:
    size = len(gang.ranks)
    inputs = gang.full(1)
    sums: list[Any] = []
    record(gang, "g", lambda: sums.extend(add(gang, inputs)))
    for turn in range(50):
        refill(gang, inputs, turn)
        replayed(gang, "g")
        run(gang, barrier, [Barrier()] * size)
        assert floats(gang, sums) == floats(gang, add(gang, inputs))
    assert done.count("launched") == 49 * size


def test_large_results_are_there_when_they_are_told(gang: LocalGang, done: list[str]) -> None:
    size, elements = len(gang.ranks), 16 * 2**20
    inputs = gang.full(1, (elements,))
    sums: list[Any] = []
    record(gang, "g", lambda: sums.extend(add(gang, inputs)))
    for turn in range(5):
        for ref in inputs:
            rank = gang.ranks[ref.rank]
            rank.refs.find("", ref.id).tensor = rank.backend.tensors.create(ref.spec, Full(float(turn)))
        replayed(gang, "g")
        for ref in sums:
            tensor: Any = gang.ranks[ref.rank].refs.find("", ref.id).tensor
            with torch.cuda.device(tensor.device):
                assert bool((tensor == turn * size).all())
    assert done.count("launched") == 4 * size


def test_generations_end_and_begin_with_graphs(gang: LocalGang, done: list[str]) -> None:
    size = len(gang.ranks)
    inputs = gang.full(1)
    sums: list[Any] = []
    record(gang, "g", lambda: sums.extend(add(gang, inputs)))
    for generation in range(1, 5):
        for _ in range(3):
            replayed(gang, "g")
            assert floats(gang, sums) == [[size, size]] * size
        assert done.count("launched") == 2 * generation * size
        # NCCL waits for graphs when it frees a communicator; there are none left by then.
        gang.form()


def test_tensors_are_made_while_graphs_are_captured(gang: LocalGang, done: list[str]) -> None:
    """Other threads use the device as ever: only the capturing one is bound."""
    size, over = len(gang.ranks), threading.Event()

    def make() -> None:
        tensors = gang.ranks[0].backend.tensors
        while not over.is_set():
            made = tensors.create(TensorSpec(Dtype.FLOAT32, (1023, 1025), tensors.device), Full(1.0))
            assert bytes(tensors.read(made)[:4]) == b"\0\0\x80\x3f"

    thread = threading.Thread(target=make)
    thread.start()
    try:
        inputs = gang.full(1)
        for turn in range(20):
            record(gang, f"g{turn}", lambda: add(gang, inputs))
            replayed(gang, f"g{turn}")
            replayed(gang, f"g{turn}")
    finally:
        over.set()
        thread.join()
    assert done.count("launched") == 20 * size
