"""Some of the recorded cases on four ranks that are processes of their own, on Gloo."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import pytest
from tests.conformance import checks
from tests.conformance.recorded import Json, label, refused, replayed
from tests.support.gangs import RunningGang, up

import rankbridge
from rankbridge import Gang

NUMBERS = itertools.count()


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningGang]:
    """Four ranks on Gloo."""
    with up(tmp_path_factory.mktemp("gloo"), 4, "gloo", checks.PATIENT) as gang:
        yield gang


@pytest.fixture
def gang(running: RunningGang) -> Iterator[Gang]:
    """A connection to them."""
    with rankbridge.connect(running.endpoints_file, timeout=60) as gang:
        yield gang


@pytest.fixture
def name() -> str:
    """A name that no group's begins with."""
    return f"case{next(NUMBERS)}"


def cases(suite: str, *names: str) -> pytest.MarkDecorator:
    """Runs a test for each of these cases of a world of 4."""
    found = [case for case in replayed(suite, *names, world=4) if "per_rank" not in case or not refused(case)]
    assert found
    return pytest.mark.parametrize("case", found, ids=label)


@cases("vllm", "props/w4_unsorted_ranks")
def test_in_an_unsorted_group_data_comes_in_group_order(case: Json, gang: Gang, name: str) -> None:
    checks.assert_unsorted_groups(case, gang, name)


@cases("vllm", "props/")
def test_vllm_members_of_groups(case: Json, gang: Gang, name: str) -> None:
    checks.assert_vllm_members(case, gang, name)


@cases("optimus_mesh", "mesh_table")
def test_optimus_meshes(case: Json, gang: Gang, name: str) -> None:
    checks.assert_optimus_mesh(case, gang, name)


@cases("olmo", "get_mesh_coordinates")
def test_olmo_mesh_coordinates(case: Json, gang: Gang, name: str) -> None:
    checks.assert_olmo_mesh(case, gang, name)


@cases("gfn_context_head", "initialize_distributed_compute")
def test_contexts_of_the_newer_torchgfn(case: Json, gang: Gang, name: str) -> None:
    checks.assert_context(case, gang, name, "head")
