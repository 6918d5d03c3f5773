"""A rank that dies and is replaced at the same endpoints: real processes on Gloo, both fronts."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from tests.unit.client.fronts import connected
from tests.unit.client.rank_processes import RankProcesses, rank_processes

import rankbridge

SIZE = 2


@pytest.fixture(scope="module")
def processes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RankProcesses]:
    """Two ranks without a generation."""
    with rank_processes(tmp_path_factory.mktemp("ranks"), SIZE) as ranks:
        yield ranks


@pytest.fixture
def ranks(processes: RankProcesses) -> RankProcesses:
    """The ranks, all of them alive."""
    for rank in tuple(processes.dead):
        processes.replace(rank)
    return processes


@pytest.mark.parametrize("killed", [0, 1])
@pytest.mark.parametrize("kind", ["unix", "tcp"])
def test_a_replaced_rank_is_formed_with_the_survivors_by_one_call(
    front: str, ranks: RankProcesses, kind: str, killed: int
) -> None:
    targets = ranks.unix if kind == "unix" else ranks.tcp
    survivor = 1 - killed
    with connected(front, targets, timeout=20) as gang:
        gang.form()
        refs = gang.put([np.full(2, rank + 1, np.float32) for rank in range(SIZE)])
        waiting = gang[survivor].start("barrier")
        while gang[survivor].status().pending_operations == 0:
            pass
        ranks.kill(killed)
        error = waiting.exception()
        assert isinstance(error, rankbridge.PeerLostError)
        assert [detail.rank for detail in error.ranks if detail.state == "lost"] == [killed]
        with pytest.raises(rankbridge.RankBridgeError) as caught:
            gang.all_reduce(refs)
        # The leader is gone, or says that its generation is over.
        assert isinstance(caught.value, rankbridge.UnavailableError | rankbridge.StaleGenerationError)
        ranks.replace(killed)
        formed = gang.form(timeout=10)
        assert formed.world_size == SIZE
        # What the survivor holds is there; the session is open on the new rank as well.
        refs[killed] = gang[killed].put(np.full(2, 10, np.float32))
        assert refs[killed].session_id == gang.session_id
        for value in gang.get(gang.all_reduce(refs)):
            np.testing.assert_array_equal(value, [survivor + 11] * 2)


@pytest.mark.parametrize("killed", [0, 1])
def test_forming_waits_for_a_rank_that_does_not_serve_yet(
    front: str, ranks: RankProcesses, killed: int
) -> None:
    with connected(front, ranks.unix, timeout=20) as gang:
        gang.form()
        ranks.kill(killed)
        forming = _forming(gang, ranks, killed)
        assert forming.world_size == SIZE
        gang.barrier()
        gang[killed].put(1.0)


def _forming(gang: Any, ranks: RankProcesses, killed: int) -> rankbridge.Formed:
    replacing = threading.Timer(0.3, ranks.replace, [killed])
    replacing.start()
    try:
        formed: rankbridge.Formed = gang.form(timeout=15)
        return formed
    finally:
        replacing.join()
