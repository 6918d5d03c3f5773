"""Meshes and layouts across generations: made again with a gang of the same size, refused in a smaller one."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.conformance.checks import PATIENT, assert_groups_work
from tests.support.gangs import up
from tests.support.processes import watched

import rankbridge
from rankbridge import Gang, GenerationError, InvalidArgumentError, Layout, UnavailableError

AXES = {"dp_replicate": 2, "dp_shard": 1, "tp": 2}
DP = {"dp": ("dp_replicate", "dp_shard")}


@pytest.fixture
def gang(tmp_path: Path) -> Iterator[Gang]:
    """Four ranks on the fake backend, that no other test has used."""
    with up(tmp_path, 4, "fake") as running, rankbridge.connect(running.endpoints_file, timeout=60) as gang:
        yield gang


def test_the_groups_of_a_mesh_exist_again_in_the_next_generation(gang: Gang) -> None:
    mesh = gang.new_mesh(AXES, flattened=DP, local=True)
    layout = gang.new_layout(Layout.by_host(gang.hosts(), buffers=1))
    assert_groups_work(gang, [*mesh.groups(), *layout.groups()])
    formed = gang.form()
    assert formed.generation > mesh.generation
    assert_groups_work(gang, [*mesh.groups(), *layout.groups()])
    again = gang.mesh(AXES, flattened=DP, local=True)
    assert again.generation == formed.generation
    assert [group.name for group in again.groups()] == [group.name for group in mesh.groups()]


def test_a_mesh_can_be_formed_together_with_a_generation(gang: Gang) -> None:
    plan = rankbridge.Mesh.plan(AXES, len(gang), flattened=DP)
    gang.form(groups=plan.groups())
    assert_groups_work(gang, gang.mesh(AXES, flattened=DP).groups())


def test_a_mesh_is_refused_in_a_smaller_gang(gang: Gang) -> None:
    mesh = gang.new_mesh(AXES)
    with rankbridge.connect(gang.targets[:2], timeout=60) as smaller:
        smaller.form()
        for ask in (smaller.mesh, smaller.new_mesh):
            with pytest.raises(InvalidArgumentError, match="expected 4 ranks, got 2"):
                ask(AXES)
        # Of the groups that are made again, those that lost members have fewer.
        with pytest.raises(InvalidArgumentError, match="1 of its 1 groups have other members"):
            smaller.mesh({"dp_replicate": 2})
        with pytest.raises(rankbridge.UnknownGroupError, match="2 of its 3 groups are not there"):
            smaller.mesh({"tp": 2, "pp": 1})
        with pytest.raises(rankbridge.RankOutOfRangeError):
            smaller.barrier(group=mesh.group("dp_replicate", 0))
        with pytest.raises(InvalidArgumentError, match="for a gang of another size"):
            smaller.new_layout(Layout.in_blocks(4))


def test_after_a_rank_was_lost_the_mesh_is_whole_again(tmp_path: Path) -> None:
    with (
        up(tmp_path, 4, "gloo", PATIENT) as running,
        rankbridge.connect(running.endpoints_file, timeout=60) as gang,
    ):
        mesh = gang.new_mesh(AXES, flattened=DP)
        assert_groups_work(gang, mesh.groups())
        with watched([running.pids[3]]) as lost:
            os.kill(running.pids[3], signal.SIGKILL)
            assert lost.alive_after(60) == []
        with pytest.raises((GenerationError, UnavailableError)):
            gang.barrier()
        gang.form(timeout=60)
        # Rank 3 had groups of its own alone, of which its successor has never heard from it.
        assert_groups_work(gang, gang.mesh(AXES, flattened=DP).groups())
