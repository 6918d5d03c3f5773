"""The recorded cases whose groups are made, on real gangs of their size on the fake backend."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest
from tests.conformance import checks, told
from tests.conformance.recorded import Json, answers, label, name_of, refused, replayed, vllm_ranks
from tests.support.gangs import RunningGang, up

import rankbridge
from rankbridge import Gang, InvalidArgumentError, RankOutOfRangeError

NUMBERS = itertools.count()


@pytest.fixture(scope="module")
def gangs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[int], RunningGang]]:
    """Gives a gang of any size, started when it is asked for first."""
    running: dict[int, RunningGang] = {}
    with ExitStack() as stack:

        def of_size(world: int) -> RunningGang:
            if world not in running:
                directory = tmp_path_factory.mktemp(f"world{world}")
                running[world] = stack.enter_context(up(directory, world, "fake"))
            return running[world]

        yield of_size


@pytest.fixture
def gang(case: Json, gangs: Callable[[int], RunningGang]) -> Iterator[Gang]:
    """A connection to a gang of the case's size."""
    with rankbridge.connect(gangs(case["world"]).endpoints_file, timeout=60) as gang:
        yield gang


@pytest.fixture
def name() -> str:
    """A name that no group's begins with."""
    return f"case{next(NUMBERS)}"


def cases(suite: str, *names: str) -> pytest.MarkDecorator:
    """Runs a test for each of these cases."""
    found = replayed(suite, *names)
    assert found
    return pytest.mark.parametrize("case", found, ids=label)


@cases("vllm", "props/", "nodes/", "ctor/overlapping_lists")
def test_vllm_members_of_groups(case: Json, gang: Gang, name: str) -> None:
    checks.assert_vllm_members(case, gang, name)


@cases("vllm", "nodes/")
def test_vllm_hosts_of_groups(case: Json, gang: Gang) -> None:
    for answer in vllm_ranks(case):
        assert answer["steps"] == [{"ok": told.vllm_nodes(gang.group("world"))}]


@cases("vllm", "ctor/duplicate_rank", "ctor/rank_out_of_range")
def test_vllm_groups_that_cannot_be(case: Json, gang: Gang, name: str) -> None:
    assert all("error" in answer["ctor"]["g"] for answer in vllm_ranks(case))
    (ranks,) = case["groups"][0]["group_ranks"]
    makers: list[Callable[[], Any]] = [
        lambda: gang.new_groups([(name, ranks)]),
        lambda: gang.new_group(name, ranks),
    ]
    for make in makers:
        with pytest.raises(InvalidArgumentError) as caught:
            make()
        assert isinstance(caught.value, RankOutOfRangeError) == (max(ranks) >= len(gang))
        assert not caught.value.indefinite
    assert name not in [group.name for group in gang.groups()]


@cases("vllm", "props/w4_unsorted_ranks")
def test_in_an_unsorted_group_data_comes_in_group_order_unlike_in_vllm(
    case: Json, gang: Gang, name: str
) -> None:
    checks.assert_unsorted_groups(case, gang, name)


@cases("optimus_mesh", "mesh_table")
def test_optimus_meshes(case: Json, gang: Gang, name: str) -> None:
    checks.assert_optimus_mesh(case, gang, name)


@cases("optimus_mesh", "mesh_ctor_error")
def test_optimus_meshes_that_do_not_fit(case: Json, gang: Gang, name: str) -> None:
    before = gang.groups()

    def make() -> None:
        physical = gang.new_mesh(told.optimus_hosts(case["inputs"]), name=f"{name}/hosts")
        gang.destroy_groups(physical.groups())
        gang.new_mesh(told.optimus_axes(case["inputs"]), name=name)

    with pytest.raises(InvalidArgumentError, match="do not fit the number of ranks"):
        make()
    assert gang.groups() == before


@cases("olmo", "get_rank", "get_world_size", "get_local_rank", "get_num_nodes", "is_distributed")
def test_olmo_ranks(case: Json, gang: Gang) -> None:
    world = gang.group("world")
    ours: dict[str, list[Any]] = {
        "get_rank": [member.rank for member in world.members],
        "get_world_size": [member.world_size for member in world.members],
        "get_local_rank": [member.local_rank for member in world.members],
        "get_num_nodes": [len(world.by_host())] * len(gang),
        "is_distributed": [status.generation_state == "formed" for status in gang.status()],
    }
    assert answers(case) == ours[name_of(case)]


@cases("olmo", "group_ranks")
def test_olmo_groups(case: Json, gang: Gang, name: str) -> None:
    inputs = case.get("inputs_per_rank") or [case["inputs"]] * len(gang)
    lists = sorted({tuple(one["ranks"]) for one in inputs})
    groups = gang.new_groups([(f"{name}/{place}", ranks) for place, ranks in enumerate(lists)])
    for rank, recorded in enumerate(answers(case)):
        (own,) = (group for group in groups if rank in group)
        place = checks.own_groups(gang, rank)[own.name].rank_in_group
        assert recorded == [own.member(rank).rank_in_group, len(own), list(own.ranks), place]


@cases("olmo", "reversed_group")
def test_a_reversed_group_keeps_its_order_unlike_in_torch(case: Json, gang: Gang, name: str) -> None:
    (group,) = gang.new_groups([(name, case["inputs"]["ranks"])])
    checks.assert_groups_work(gang, [group])
    assert [answer[1] for answer in answers(case)] == [sorted(group.ranks)] * len(gang)


@cases("olmo", "get_mesh_coordinates")
def test_olmo_mesh_coordinates(case: Json, gang: Gang, name: str) -> None:
    checks.assert_olmo_mesh(case, gang, name)


def made_contexts(version: str) -> pytest.MarkDecorator:
    """Runs a test for each recorded context of a version of torchgfn that was not refused."""
    found = replayed(f"gfn_context_{version}", "initialize_distributed_compute")
    return pytest.mark.parametrize("case", [case for case in found if not refused(case)], ids=label)


@made_contexts("seed")
def test_contexts_of_the_older_torchgfn(case: Json, gang: Gang, name: str) -> None:
    checks.assert_context(case, gang, name, "seed")


@made_contexts("head")
def test_contexts_of_the_newer_torchgfn(case: Json, gang: Gang, name: str) -> None:
    checks.assert_context(case, gang, name, "head")
