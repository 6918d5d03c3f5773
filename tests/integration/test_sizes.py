"""Sizes that outgrow one sidecar, as large as takes seconds; `python -m bench.sizes` has the whole."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from bench.sizes import tensors
from bench.sizes.memory import resident_bytes, watched
from tests.conftest import PATIENT
from tests.support.gangs import RunningGang, up

import rankbridge

MIB = 1 << 20
TENSOR = 256 * MIB + 4096
REFS = 20_000
RANKS = 256
SUM = RANKS * (RANKS - 1) // 2
TIMEOUT_S = 60.0


@pytest.fixture(scope="module")
def two(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningGang]:
    """Two ranks on Gloo with room for the tensor."""
    options = [*PATIENT, "--max-shared-bytes", str(3 * TENSOR)]
    with up(tmp_path_factory.mktemp("sizes"), 2, "gloo", options) as it:
        yield it


def test_a_large_tensor_by_grpc_takes_its_own_memory_and_chunks(two: RunningGang) -> None:
    source = tensors.counting(TENSOR)
    with rankbridge.connect(two.description, timeout=TIMEOUT_S, shared_memory=False) as gang:
        for step in tensors.transfers("gRPC", gang[1], source):
            step.check()


def test_a_large_tensor_by_shared_memory_is_one_memory(two: RunningGang) -> None:
    source = tensors.counting(TENSOR)
    with rankbridge.connect(two.description, timeout=TIMEOUT_S) as gang:
        for step in tensors.transfers("shared memory", gang[1], source):
            step.check()
        assert gang[1].transfers == rankbridge.Transfers(shared=2)


def test_a_large_tensor_is_made_and_reduced_with_its_results_memory(two: RunningGang) -> None:
    with rankbridge.connect(two.description, timeout=TIMEOUT_S, shared_memory=False) as gang:
        for step in tensors.all_reduce(gang, TENSOR):
            step.check()


def test_bools_are_checked_without_a_copy(two: RunningGang) -> None:
    data = bytes([0, 1]) * (TENSOR // 2)
    with rankbridge.connect(two.description, timeout=TIMEOUT_S, shared_memory=False) as gang:
        pids = [gang[0].status().pid, os.getpid()]
        put = watched(pids, lambda: gang[0].put(rankbridge.Tensor("bool", (TENSOR,), data)))
        tensors.Step("gRPC, put", TENSOR, put.seconds, *put.grown).check()
        with pytest.raises(rankbridge.errors.InvalidArgumentError, match="neither 0 nor 1"):
            gang[0].put(rankbridge.Tensor("bool", (TENSOR,), data[:-1] + b"\2"))


@pytest.mark.sampled
def test_many_refs_are_listed_by_pages_and_released_at_once(tmp_path: Path) -> None:
    with (
        up(tmp_path, 2, "fake") as running,
        rankbridge.connect(running.description, timeout=TIMEOUT_S) as gang,
    ):
        one = gang[0].create("float32", ())
        pid = gang[1].status().pid
        # One operation makes many, on all members but the source.
        half = {str(at): one for at in range(REFS // 2)}
        made = watched(
            [pid], lambda: [ref for _ in range(2) for ref in gang.broadcast_tensor_dict(half)[1].values()]
        )
        assert len({ref.id for ref in made.result}) == REFS
        assert made.grown[0] < REFS * 8192
        listed = gang[1].list_refs()
        numbers = [int(ref.id.rpartition(".")[2]) for ref in listed]
        assert {ref.id for ref in listed} == {ref.id for ref in made.result}
        assert numbers == sorted(numbers)
        gang[1].release(listed[10:-10])
        assert gang[1].list_refs() == listed[:10] + listed[-10:]
        assert gang[1].release(listed[:10] + listed[-10:]) == 20
        assert gang[1].list_refs() == []


@pytest.mark.sampled
def test_many_ranks_in_one_process(tmp_path: Path) -> None:
    with (
        up(tmp_path, RANKS, "fake") as running,
        rankbridge.connect(running.description, timeout=TIMEOUT_S) as gang,
    ):
        assert {len(set(running.pids)), len(gang)} == {1, RANKS}
        gang.ping()
        refs = gang.create("int64", (), init=[rankbridge.full(rank) for rank in range(RANKS)])
        for calls in ("gang", "ranks"):
            gang.barrier(calls=calls)
            sums = gang.all_reduce(refs, calls=calls)
            assert [int(gang[rank].get(sums[rank], to="tensor").numpy()) for rank in (0, 77, 255)] == [
                SUM
            ] * 3
            assert gang.release(sums) == RANKS
        assert resident_bytes(running.pids[0]) < RANKS * 4 * MIB
