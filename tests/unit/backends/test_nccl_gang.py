"""A gang on NCCL's stand-in: the sidecar's core and services on tensors that are reached by way of other memory."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from tests.contract import cases, test_cases
from tests.contract.able import as_able
from tests.support.nccl_on_cpu import CpuEngine
from tests.support.waiting import until

import rankbridge
from rankbridge import Gang
from rankbridge_server.backends.nccl import NcclBackend
from rankbridge_server.core.dtype import Dtype
from rankbridge_server.core.limits import Limits
from rankbridge_server.core.rank import Identity
from rankbridge_server.links.heartbeat import Heartbeat
from rankbridge_server.links.pairs import PairLinkMaker
from rankbridge_server.sidecar.settings import RankSettings
from rankbridge_server.sidecar.sidecar import Sidecar

SIZE = 4
FORM_TIMEOUT_S = 60.0
# Coordinators are asked for every dtype elsewhere; a third of the rest shows that the way to them is the same.
OTHER_DTYPES = {it.torch_name for it in Dtype} - {"float32", "bool", "complex64", "float8_e5m2"}
CASES = [case for case in test_cases.CASES if not OTHER_DTYPES.intersection(case["case"].split())][::3]


@pytest.fixture(scope="module")
def engines() -> list[CpuEngine]:
    return [CpuEngine() for _ in range(SIZE)]


@pytest.fixture(scope="module")
def gang(engines: list[CpuEngine], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gang]:
    directory, hub = tmp_path_factory.mktemp("nccl"), PairLinkMaker()
    sidecars = [
        Sidecar(
            Identity(rank, SIZE, local_rank=rank), NcclBackend(rank, engine), hub, settings(directory, rank)
        )
        for rank, engine in enumerate(engines)
    ]
    try:
        sidecars[0].form([it.endpoints[0] for it in sidecars], FORM_TIMEOUT_S)
        with rankbridge.connect([it.endpoints[0] for it in sidecars], timeout=60) as gang:
            yield gang
    finally:
        for sidecar in sidecars:
            sidecar.stop()


def settings(directory: Path, rank: int) -> RankSettings:
    return RankSettings(
        listen=(f"unix:{directory}/rank-{rank}",),
        links="",
        limits=Limits(max_bytes=2**30),
        heartbeat=Heartbeat(1.0, 30),
    )


# torch says so whenever it moves complex32.
@pytest.mark.filterwarnings("ignore:ComplexHalf")
@pytest.mark.parametrize("case", CASES, ids=[case["case"] for case in CASES])
def test_case(gang: Gang, case: cases.Json) -> None:
    abilities = gang[0].status().abilities
    assert abilities is not None
    test_cases.check_case(gang, as_able(case, abilities))


def test_ranks_say_what_they_are_and_what_they_can(gang: Gang) -> None:
    for status in gang.status():
        assert (status.backend, status.device) == ("nccl", "cpu")
        abilities = status.abilities
        assert abilities is not None
        assert "scan" not in abilities.collectives
        able = {op for op, dtypes in abilities.reductions.items() if dtypes}
        assert able == {"sum", "product", "min", "max", "avg"}


@pytest.mark.parametrize("elements", [0, 1, 3_000_000])
def test_what_was_put_is_got(gang: Gang, elements: int) -> None:
    given = np.arange(elements, dtype=np.float32)
    ref = gang[1].put(given)
    np.testing.assert_array_equal(gang[1].get(ref), given)
    gang[1].release(ref)


def test_a_put_that_breaks_off_leaves_nothing_behind(gang: Gang) -> None:
    before = sum(usage.bytes for usage in gang[2].status().sessions)
    with pytest.raises(rankbridge.InvalidArgumentError):
        gang[2].put(rankbridge.Tensor("bool", (2,), b"\x01\x02"))
    assert sum(usage.bytes for usage in gang[2].status().sessions) == before


def test_a_generation_is_formed_again_with_its_groups(gang: Gang, engines: list[CpuEngine]) -> None:
    pair = gang.new_group("pair", [3, 1])
    refs = gang.put([np.full(3, rank, np.int64) for rank in range(SIZE)])
    old = [group for engine in engines for group in engine.groups]
    gang.form()
    for it in gang.get(gang.all_reduce(refs)):
        assert np.asarray(it).tolist() == [6] * 3
    there = gang.get(gang.all_gather([refs[3], refs[1]], group="pair"))
    assert np.asarray(there[0]).tolist() == [3, 3, 3, 1, 1, 1]
    # Those of the generation before are given up in the background.
    for group in old:
        until(group.aborted.is_set)
    gang.destroy_group(pair.name)


def test_graphs_are_launched_and_captured_anew_when_the_gang_is_formed(
    gang: Gang, engines: list[CpuEngine]
) -> None:
    refs = gang.put([np.full(3, rank, np.float32) for rank in range(SIZE)])
    with gang.graph_capture() as graph:
        gang.all_reduce(refs, in_place=True)
        rows = gang.all_gather(refs)
    launched = [sum(side.launched for side in engine.sides) for engine in engines]
    value = 6.0
    for turn in range(6):
        if turn == 3:
            gang.form()
        gathered = gang.replay(graph)[1]
        assert gathered == rows
        for it in gang.get(gathered):
            np.testing.assert_array_equal(it, np.full(3 * SIZE, value, np.float32))
        value *= SIZE
        for it in gang.get(refs):
            np.testing.assert_array_equal(it, np.full(3, value, np.float32))
    # All but the first of each generation.
    assert [sum(side.launched for side in engine.sides) for engine in engines] == [it + 4 for it in launched]
    gang.release_graph(graph)
