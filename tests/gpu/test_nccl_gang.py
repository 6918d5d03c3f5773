"""Gangs on NCCL: a rank for each device, forked by an agent that has touched none."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator

import numpy as np
import pytest
from tests.support.devices import DEVICES, MEMBERS, SHARING, device_of
from tests.support.gangs import RANKBRIDGE, START_TIMEOUT_S, RunningGang, up
from tests.support.waiting import until

import rankbridge
from rankbridge import Gang, Graph

pytestmark = pytest.mark.gpu


@pytest.fixture(scope="module", params=sorted({1, MEMBERS}), ids=lambda size: f"nccl{size}")
def running(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[RunningGang]:
    with up(tmp_path_factory.mktemp("nccl"), request.param, "nccl") as it:
        yield it


@pytest.fixture
def gang(running: RunningGang) -> Iterator[Gang]:
    with rankbridge.connect(running.description, timeout=60) as it:
        yield it


def test_ranks_say_where_their_tensors_are_and_what_they_can(gang: Gang) -> None:
    for rank, status in enumerate(gang.status()):
        assert (status.backend, status.device) == ("nccl", str(device_of(rank)))


def test_collectives_give_what_they_should(gang: Gang) -> None:
    size = len(gang)
    given = [np.arange(1000, dtype=np.float32) + rank for rank in range(size)]
    refs = gang.put(given)
    for it in gang.get(gang.all_reduce(refs)):
        np.testing.assert_array_equal(it, np.sum(given, axis=0))
    for it in gang.get(gang.all_gather(refs)):
        np.testing.assert_array_equal(it, np.concatenate(given))
    for it in gang.get(gang.broadcast(refs, src_rank_in_group=size - 1)):
        np.testing.assert_array_equal(it, given[size - 1])
    gang.barrier()


def test_objects_and_large_tensors_pass_the_device_unchanged(gang: Gang) -> None:
    values = [{"rank": rank, "text": "ü" * 1000} for rank in range(len(gang))]
    for it in gang.all_gather_object(values):
        assert it == values
    large = np.random.default_rng(1).integers(0, 256, 48 * 2**20, np.uint8)
    np.testing.assert_array_equal(gang[0].get(gang[0].put(large)), large)


def test_a_generation_is_formed_again_and_refs_stay(gang: Gang) -> None:
    refs = gang.put([np.full(5, rank, np.int64) for rank in range(len(gang))])
    before = gang.status()[0].generation
    for turn in range(1, 4):
        assert gang.form().generation == before + turn
        for it in gang.get(gang.all_reduce(refs)):
            assert np.asarray(it).tolist() == [sum(range(len(gang)))] * 5


def test_graphs_are_replayed_in_one_generation_and_the_next(gang: Gang) -> None:
    size = len(gang)
    refs = gang.put([np.full(1000, rank + 1, np.float32) for rank in range(size)])
    with gang.graph_capture() as graph:
        sums = gang.all_reduce(refs)
        rows = gang.all_gather(refs)
    for turn in range(6):
        if turn == 3:
            gang.form()
        assert gang.replay(graph) == [sums, rows]
        for it in gang.get(sums):
            np.testing.assert_array_equal(it, np.full(1000, size * (size + 1) / 2, np.float32))
        for it in gang.get(rows):
            np.testing.assert_array_equal(it, np.repeat(np.arange(1, size + 1, dtype=np.float32), 1000))
    gang.release_graph(graph)


def test_a_rank_that_is_killed_between_replays_ends_them(tmp_path_factory: pytest.TempPathFactory) -> None:
    with (
        up(tmp_path_factory.mktemp("replays"), MEMBERS, "nccl") as running,
        rankbridge.connect(running.description, timeout=60) as gang,
    ):

        def forever(graph: Graph) -> None:
            while True:
                gang.replay(graph)

        def replays(*, killed: bool) -> None:
            refs = gang.put([np.ones(3, np.float32)] * MEMBERS)
            with gang.graph_capture() as graph:
                sums = gang.all_reduce(refs)
            for _ in range(5):
                gang.replay(graph)
                for it in gang.get(sums):
                    assert np.asarray(it).tolist() == [MEMBERS] * 3
            if killed:
                os.kill(running.pids[-1], signal.SIGKILL)
                # Somewhere on its way, or before.
                with pytest.raises(rankbridge.RankBridgeError):
                    forever(graph)

        replays(killed=True)
        generation = gang.form(timeout=60).generation
        until(lambda: all(it.generation == generation for it in gang.status()))
        replays(killed=False)


def test_a_killed_rank_is_replaced_on_its_device(tmp_path_factory: pytest.TempPathFactory) -> None:
    with (
        up(tmp_path_factory.mktemp("killed"), MEMBERS, "nccl") as running,
        rankbridge.connect(running.description, timeout=60) as gang,
    ):
        os.kill(running.pids[-1], signal.SIGKILL)
        generation = gang.form(timeout=60).generation
        until(lambda: all(it.generation == generation for it in gang.status()))
        refs = gang.put([np.ones(3, np.float32)] * MEMBERS)
        for it in gang.get(gang.all_reduce(refs)):
            assert np.asarray(it).tolist() == [MEMBERS] * 3


def test_more_ranks_than_devices_are_refused_with_the_reason() -> None:
    done = subprocess.run(
        [RANKBRIDGE, "up", "--size", str(DEVICES + 1), "--backend", "nccl"],
        capture_output=True,
        text=True,
        timeout=START_TIMEOUT_S,
        env={name: value for name, value in os.environ.items() if name != SHARING},
    )
    assert done.returncode == 1
    assert f"the members of rank 0 and {DEVICES} in the group are on one device" in done.stderr
