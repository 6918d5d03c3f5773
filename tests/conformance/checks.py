"""What must hold on a gang for a recorded case, whatever its backend."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from tests.conformance import told
from tests.conformance.differences import gfn_recorded
from tests.conformance.recorded import Json, answers, subset, vllm_ranks

from rankbridge import Gang, Group, Ref

PATIENT = ("--heartbeat-misses", "300")
"""Options of a gang whose ranks are processes: on a busy machine one may be silent for longer than the default."""


def floats(gang: Gang, refs: Sequence[Ref]) -> list[list[float]]:
    """The elements of each tensor."""
    return [np.asarray(value).tolist() for value in gang.get(refs)]


def gathered(gang: Gang, group: Group) -> list[list[float]]:
    """What each member has when every one brought its rank in the gang, in group order."""
    refs = gang.put([np.full(1, rank, np.float32) for rank in group.ranks], group=group)
    joined = gang.all_gather(refs, group=group)
    values = floats(gang, joined)
    gang.release([*refs, *joined])
    return values


def assert_groups_work(gang: Gang, groups: Sequence[Group]) -> None:
    """Each rank knows its own groups and its place in them, and data goes round in each."""
    for rank in gang:
        known = own_groups(gang, rank.rank)
        for group in groups:
            if rank.rank in group:
                there, member = known[group.name], group.member(rank.rank)
                assert (there.ranks, there.rank_in_group) == (group.ranks, member.rank_in_group)
            else:
                assert group.name not in known
    for group in groups:
        assert gathered(gang, group) == [list(group.ranks)] * len(group)


def own_groups(gang: Gang, rank: int) -> dict[str, Group]:
    """The groups that a rank is a member of, as it tells them itself, by name."""
    return {group.name: group for group in gang[rank].groups() if group.rank_in_group is not None}


def assert_vllm_members(case: Json, gang: Gang, name: str) -> None:
    """Groups are made of vLLM's lists, and tell of their members what vLLM does."""
    for built in case["groups"]:
        lists = enumerate(built["group_ranks"])
        made = gang.new_groups([(f"{name}/{built['as']}/{number}", ranks) for number, ranks in lists])
        groups = [gang.group(group.name) for group in made]
        assert_groups_work(gang, groups)
        for rank, answer in enumerate(vllm_ranks(case)):
            group = [one for one in groups if rank in one][-1]
            ours = told.vllm_member(group, rank)
            assert subset(answer["ctor"][built["as"]]["ok"], ours) == ours
        gang.destroy_groups(groups)


def assert_unsorted_groups(case: Json, gang: Gang, name: str) -> None:
    """Data comes in the order of the group, which vLLM's does not."""
    lists = case["groups"][0]["group_ranks"]
    gather, broadcast, ends = (
        [answer["steps"][step]["ok"] for answer in vllm_ranks(case)] for step in (0, 1, 3)
    )
    for group in gang.new_groups([(f"{name}/{number}", ranks) for number, ranks in enumerate(lists)]):
        # Member i brings [i + 1, i + 1]. vLLM joins them by rank in the gang, and gathers where the lowest is.
        refs = gang.put([np.full(2, place + 1, np.float32) for place in range(len(group))], group=group)
        assert floats(gang, gang.all_gather(refs, group=group)) == [[1, 1, 2, 2]] * 2
        assert [gather[rank]["tensor"]["data"] for rank in group.ranks] == [[2, 2, 1, 1]] * 2
        assert floats(gang, gang.broadcast(refs, group=group)) == [[1, 1]] * 2
        assert [broadcast[rank]["tensor"]["data"] for rank in group.ranks] == [[1, 1]] * 2
        first, last = gang.gather(refs, dst_rank_in_group=0, group=group)
        assert first is not None
        assert floats(gang, [first]) == [[1, 1, 2, 2]]
        assert last is None
        assert ends[group.first_rank] is None
        assert ends[group.last_rank]["tensor"]["data"] == [2, 2, 1, 1]


def assert_optimus_mesh(case: Json, gang: Gang, name: str) -> None:
    """Both meshes are made, and each rank is in the groups that were recorded."""
    inputs = case["inputs"]
    mesh = gang.new_mesh(told.optimus_axes(inputs), name=name, flattened=told.DP)
    physical = gang.new_mesh(told.optimus_hosts(inputs), name=f"{name}/hosts")
    assert_groups_work(gang, [*mesh.groups(), *physical.groups()])
    for rank, recorded in enumerate(answers(case)):
        own = own_groups(gang, rank)
        groups = {
            axis: list(own[part.group(axis, rank).name].ranks)
            for part in (mesh, physical)
            for axis in part.axes
        }
        assert groups == recorded["groups"]
        assert groups["tp"] == recorded["tp_world"]["ranks"]
        assert groups["local_ranks"] == recorded["local"]["ranks"]
        dp = own[mesh.group("dp", rank).name]
        assert (dp.rank_in_group, len(dp)) == (recorded["dp_rank"], recorded["dp_world_size"])
    ended = gang.destroy_groups([*mesh.groups(), *physical.groups()])
    assert len(ended) == len(mesh.groups()) + len(physical.groups())


def assert_olmo_mesh(case: Json, gang: Gang, name: str) -> None:
    """A mesh is made, and each rank is where it was recorded."""
    axes = dict(zip(case["inputs"]["names"], case["inputs"]["shape"], strict=True))
    mesh = gang.new_mesh(axes, name=name)
    assert_groups_work(gang, mesh.groups())
    for rank, recorded in enumerate(answers(case)):
        assert told.olmo_coordinates(mesh, rank) == recorded
        own = own_groups(gang, rank)
        for axis, sub in recorded["sub"].items():
            group = own[mesh.group(axis, rank).name]
            assert (list(group.ranks), [group.rank_in_group]) == (sub["ranks"], sub["mine"])


def assert_context(case: Json, gang: Gang, name: str, version: str) -> None:
    """The groups of a layout are there, and each rank tells of them what torchgfn told."""
    layout = gang.new_layout(replace(told.gfn_plan(version, case), name=name))
    status = gang[0].status()
    assert (layout.generation, layout.backend) == (status.generation, status.backend)
    assert_groups_work(gang, layout.groups())
    for rank, answer in enumerate(answers(case)):
        recorded = gfn_recorded(answer, layout, rank, version)["groups_torch"]
        own = own_groups(gang, rank)

        def seen(group: Group, own: dict[str, Group] = own) -> Json:
            return list(own[group.name].ranks) if group.name in own else "non_member"

        assert told.gfn_groups(layout, seen) == recorded
    gang.destroy_groups(layout.groups())
