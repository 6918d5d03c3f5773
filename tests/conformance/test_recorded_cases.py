"""Every recorded case about ranks, groups, meshes and layouts, against the pure code. No rank is asked."""

from __future__ import annotations

import math

import pytest
from tests.conformance import differences, told
from tests.conformance.recorded import (
    NOT_REPLAYED,
    REPLAYED,
    SUITES,
    Json,
    answers,
    cases,
    label,
    name_of,
    refused,
    replayed,
    subset,
    vllm_ranks,
)

from rankbridge import Group, InvalidArgumentError, Layout, Mesh, Place, RankOutOfRangeError
from rankbridge._layout import split_evenly


@pytest.mark.parametrize("suite", SUITES)
def test_every_case_is_replayed_or_named_as_not_replayed(suite: str) -> None:
    known = [*REPLAYED[suite], *(begin for begins in NOT_REPLAYED[suite].values() for begin in begins)]
    used = [[begin for begin in known if name_of(case).startswith(begin)] for case in cases(suite)]
    assert all(len(begins) == 1 for begins in used), used
    assert {begins[0] for begins in used} == set(known)


def vllm_group(ranks: list[int], name: str, world: int) -> Group:
    """A group of ranks that are all on one host, as they were when vLLM was recorded."""
    return Group(
        name=name, ranks=tuple(ranks), places=tuple(Place(host="a", local_rank=rank) for rank in ranks)
    )


@pytest.mark.parametrize("case", replayed("vllm", "props/", "nodes/", "ctor/overlapping_lists"), ids=label)
def test_vllm_members_of_groups(case: Json) -> None:
    for built in case["groups"]:
        groups = [vllm_group(ranks, "g", case["world"]) for ranks in built["group_ranks"]]
        for rank, answer in enumerate(vllm_ranks(case)):
            recorded = answer["ctor"][built["as"]]["ok"]
            # In overlapping lists a rank has the last one that it is in; the bridge has both groups.
            group = [one for one in groups if rank in one][-1]
            ours = told.vllm_member(group, rank)
            assert subset(recorded, ours) == ours


@pytest.mark.parametrize("case", replayed("vllm", "nodes/"), ids=label)
def test_vllm_hosts_of_groups(case: Json) -> None:
    group = vllm_group(case["groups"][0]["group_ranks"][0], "g", case["world"])
    for answer in vllm_ranks(case):
        assert answer["steps"] == [{"ok": told.vllm_nodes(group)}]


@pytest.mark.parametrize("case", replayed("optimus_mesh", "mesh_table"), ids=label)
def test_optimus_meshes(case: Json) -> None:
    inputs, world = case["inputs"], case["world"]
    mesh = Mesh.plan(
        told.optimus_axes(inputs),
        world,
        flattened=told.DP,
        local=True,
        places=told.places(world, inputs["local_world_size"]),
    )
    physical = Mesh.plan(told.optimus_hosts(inputs), world)
    for rank, recorded in enumerate(answers(case)):
        ours = told.optimus_rank(mesh, physical, rank)
        left_out = set(recorded) - set(ours)
        assert left_out == {"default_device", "repr"}
        assert ours == {
            key: subset(value, ours[key]) if isinstance(ours[key], dict) else value
            for key, value in recorded.items()
            if key not in left_out
        }


@pytest.mark.parametrize("case", replayed("optimus_mesh", "mesh_ctor_error"), ids=label)
def test_optimus_meshes_that_do_not_fit(case: Json) -> None:
    assert refused(case)
    planned = [told.optimus_hosts(case["inputs"]), told.optimus_axes(case["inputs"])]
    fits = [case["world"] % -math.prod(axes.values()) == 0 for axes in planned]
    assert not all(fits)
    for axes in [axes for axes, fit in zip(planned, fits, strict=True) if not fit]:
        with pytest.raises(InvalidArgumentError, match="do not fit the number of ranks"):
            Mesh.plan(axes, case["world"])


@pytest.mark.parametrize("case", replayed("olmo", "get_mesh_coordinates"), ids=label)
def test_olmo_mesh_coordinates(case: Json) -> None:
    axes = dict(zip(case["inputs"]["names"], case["inputs"]["shape"], strict=True))
    mesh = Mesh.plan(axes, case["world"])
    for rank, recorded in enumerate(answers(case)):
        assert told.olmo_coordinates(mesh, rank) == recorded
    # Where OLMo tells None of a rank outside the mesh, the bridge refuses.
    with pytest.raises(InvalidArgumentError):
        mesh.coordinates(case["world"])


@pytest.mark.parametrize("case", replayed("olmo", "reversed_group"), ids=label)
def test_a_reversed_group_keeps_its_order_unlike_in_torch(case: Json) -> None:
    ranks = case["inputs"]["ranks"]
    group = Group(name="reversed", ranks=tuple(ranks))
    for rank, recorded in enumerate(answers(case)):
        assert recorded == [rank, sorted(ranks), sorted(ranks), max(ranks), min(ranks)]
        assert group.member(rank).rank_in_group == ranks.index(rank) == len(ranks) - 1 - recorded[0]
        assert (group.first_rank, group.last_rank) == (recorded[3], recorded[4])


@pytest.mark.parametrize("case", replayed("olmo_nondist", *REPLAYED["olmo_nondist"]), ids=label)
def test_olmo_outside_a_run_is_a_gang_of_one(case: Json) -> None:
    (recorded,) = answers(case)
    world = Group(name="world", ranks=(0,), places=(Place(host="a", local_rank=0),))
    match name_of(case):
        case "get_global_rank":
            # There, whatever rank in the group is asked for comes back as a rank in the gang.
            assert recorded == case["inputs"]["group_rank"] == 3
            with pytest.raises(RankOutOfRangeError):
                world.at(3)
        case "get_local_rank":
            assert recorded == world.member(0).local_rank
        case "get_num_nodes":
            # Counted from environment variables: a world of 1 on hosts of 2 ranks gives no host at all.
            assert recorded == 0 != len(world.by_host())
        case "get_local_world_size":
            variable = (case["inputs"].get("env") or {}).get("LOCAL_WORLD_SIZE", "1")
            assert recorded == int(variable)
            assert [len(ranks) for ranks in world.by_host().values()] == [1]


def host_names(inputs: Json) -> list[str]:
    """The host of each rank, of equally many on each of some hosts."""
    if "hostnames" in inputs:
        return list(inputs["hostnames"])
    there = split_evenly(range(inputs["world_size"]), inputs["num_nodes"])
    return [f"host{number}" for number, ranks in enumerate(there) for _ in ranks]


@pytest.mark.parametrize("case", replayed("gfn_layout", "build", "from_hostnames"), ids=label)
def test_gfn_layouts_by_host(case: Json) -> None:
    inputs = case["inputs"]
    numbers = {
        "buffers": inputs["num_remote_buffers"],
        "agent_groups": inputs["num_agent_groups"],
        "coordinators": inputs["num_coordinators"],
    }
    if "error" in case["result"]:
        with pytest.raises(InvalidArgumentError):
            Layout.by_host(host_names(inputs), **numbers)
        return
    layout = Layout.by_host(host_names(inputs), **numbers)
    recorded = dict(case["result"]["ok"])
    recorded["per_rank"] = [
        differences.agent_group_of_others(
            {**one, "agent_group_size": recorded["agent_group_size"]}, layout, rank, "head"
        )
        for rank, one in enumerate(recorded["per_rank"])
    ]
    ours = told.gfn_layout(layout)
    assert ours == {
        **subset(recorded, ours),
        "per_rank": [subset(one, ours["per_rank"][0]) for one in recorded["per_rank"]],
    }
    kinds = {"buffer" if warning.startswith("buffer") else "agent group" for warning in layout.warnings}
    # Where torchgfn lays out numbers of nodes and not hosts, it warns of nothing.
    assert name_of(case) == "from_hostnames" or not case["warnings"]
    if name_of(case) == "from_hostnames":
        assert kinds == differences.warnings_by_kind(case["warnings"])


@pytest.mark.parametrize("case", replayed("gfn_layout", "_split_ceil_floor"), ids=label)
def test_gfn_even_splits(case: Json) -> None:
    parts = split_evenly(range(case["inputs"]["total"]), case["inputs"]["n"])
    assert [len(part) for part in parts] == case["result"]["ok"]


@pytest.mark.parametrize("version", ["seed", "head"])
def test_gfn_contexts(version: str) -> None:
    suite = f"gfn_context_{version}"
    for case in replayed(suite, "initialize_distributed_compute"):
        if refused(case):
            with pytest.raises(InvalidArgumentError):
                told.gfn_plan(version, case)
            continue
        layout = told.gfn_plan(version, case)
        for rank, answer in enumerate(answers(case)):
            recorded = differences.gfn_recorded(answer, layout, rank, version)
            ours = told.gfn_rank(layout, rank)
            known = {key: value for key, value in ours.items() if key in recorded}
            assert known == subset(recorded, known), (label(case), rank)
            assert set(ours) - set(known) <= {"buffer_rank_set", "training_ranks"}

            def seen(group: Group, rank: int = rank) -> Json:
                return list(group.ranks) if rank in group else "non_member"

            assert told.gfn_groups(layout, seen) == recorded["groups_torch"], (label(case), rank)
