"""The bridge's answers in the forms of the systems that were recorded."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from tests.conformance.recorded import Case
from tests.conformance.values import Json

from rankbridge import Group, Layout, Mesh, Place

OPTIMUS_PARTS = ("local", "local_local", "tp_world", "local_tp_world")
"""Parts of a `MeshCollective` that are one again."""

DP = {"dp": ("dp_replicate", "dp_shard")}


def vllm_member(group: Group, rank: int) -> Json:
    """A member of a group as the properties of vLLM's `GroupCoordinator`."""
    member = group.member(rank)
    return {
        "rank": member.rank,
        "ranks": list(member.group.ranks),
        "world_size": member.world_size,
        "local_rank": member.local_rank,
        "rank_in_group": member.rank_in_group,
        "first_rank": member.first_rank,
        "last_rank": member.last_rank,
        "is_first_rank": member.is_first_rank,
        "is_last_rank": member.is_last_rank,
        "next_rank": member.next_rank,
        "prev_rank": member.prev_rank,
    }


def vllm_nodes(group: Group) -> Json:
    """How many hosts a group is on, and which members share the first one's."""
    hosts = group.by_host()
    first = hosts[group.at(0).host or ""]
    return {"node_count": len(hosts), "same_node": [rank in first for rank in group.ranks]}


def optimus_axes(inputs: Json) -> dict[str, int]:
    """The axes of optimus-dl's parallel mesh: without a sharding size, as many shards as fit on a host."""
    tp = inputs["tp_size"]
    shards = inputs["sharding_world_size"] or max(1, inputs["local_world_size"] // tp)
    return {"dp_replicate": -1, "dp_shard": shards, "tp": tp}


def optimus_hosts(inputs: Json) -> dict[str, int]:
    """The axes of optimus-dl's physical mesh."""
    return {"nodes": -1, "local_ranks": inputs["local_world_size"]}


def places(world: int, local_world_size: int) -> list[Place]:
    """Where ranks run, equally many on each host."""
    return [
        Place(host=f"host{rank // local_world_size}", local_rank=rank % local_world_size)
        for rank in range(world)
    ]


def optimus_rank(mesh: Mesh, physical: Mesh, rank: int) -> Json:
    """A rank of a mesh with the axis "local" as the properties of optimus-dl's `MeshCollective`."""
    tp, local = mesh.line("tp", rank), mesh.line("local", rank)
    dp = mesh.line("dp", rank)
    return {
        **_optimus_part(mesh, rank, mesh.ranks),
        "local_rank": mesh.member("dp", rank).local_rank,
        "mesh_shape": list(mesh.sizes),
        "mesh_names": list(mesh.axes),
        "mesh": _nested(mesh.ranks, mesh.sizes),
        "coord": list(mesh.coordinates(rank).values()),
        "phys_shape": list(physical.sizes),
        "phys_coord": list(physical.coordinates(rank).values()),
        "groups": {
            axis: list(part.group(axis, rank).ranks) for part in (mesh, physical) for axis in part.axes
        },
        "dp_mesh_shape": list(mesh.sizes[:2]),
        "dp_mesh": _nested(dp, mesh.sizes[:2]),
        "tp_mesh": list(tp),
        "local": _optimus_part(mesh, rank, local),
        "local_local": _optimus_part(mesh, rank, local),
        "tp_world": _optimus_part(mesh, rank, tp),
        "local_tp_world": _optimus_part(mesh, rank, mesh.line("tp", rank, within="local")),
    }


def _optimus_part(mesh: Mesh, rank: int, ranks: Sequence[int]) -> Json:
    """A rank in a part of a mesh."""
    dp = [one for one in mesh.line("dp", rank) if one in ranks]
    tp = [one for one in mesh.line("tp", rank) if one in ranks]
    local = [one for one in mesh.line("local", rank) if one in ranks]
    return {
        "rank": ranks.index(rank),
        "pg_rank": ranks.index(rank),
        "world_size": len(ranks),
        "pg_size": len(ranks),
        "ranks": list(ranks),
        "local_rank": local.index(rank),
        "dp_rank": dp.index(rank),
        "dp_world_size": len(dp),
        "tp_rank": tp.index(rank),
        "tp_world_size": len(tp),
        "is_master": ranks[0] == rank,
        "is_local_master": local[0] == rank,
    }


def _nested(ranks: Sequence[int], sizes: Sequence[int]) -> list[Any]:
    if len(sizes) <= 1:
        return list(ranks)
    step = math.prod(sizes[1:])
    return [_nested(ranks[start : start + step], sizes[1:]) for start in range(0, len(ranks), step)]


def olmo_coordinates(mesh: Mesh, rank: int) -> Json:
    """What OLMo-core's `get_mesh_coordinates` tells on a rank, of the mesh and of its one-axis sub-meshes."""
    return {
        "mine": list(mesh.coordinates(rank).values()),
        "all": [list(mesh.coordinates(one).values()) for one in mesh.ranks],
        "sub": {
            axis: {
                "mine": [mesh.member(axis, rank).rank_in_group],
                "ranks": list(mesh.line(axis, rank)),
                "rank0": [mesh.member(axis, 0).rank_in_group] if 0 in mesh.line(axis, rank) else None,
            }
            for axis in mesh.axes
        },
    }


def gfn_layout(layout: Layout) -> Json:
    """A layout as torchgfn's `RankLayout`. An `agent_group_id` is a trainer's; of others see the documentation."""
    return {
        "training_ranks": list(layout.trainers),
        "buffer_ranks": list(layout.buffers),
        "agent_ranks_per_group": [list(team) for team in layout.teams],
        "agent_group_size": len(layout.agent_groups[0]),
        "agent_group_rank_list": [list(group) for group in layout.agent_groups],
        "per_rank": [
            {
                "assigned_buffer": layout.buffer_of(rank),
                "assigned_training_ranks": list(layout.trainers_of(rank)) or None,
                "agent_group_id": layout.agent_group_of(rank),
            }
            for rank in range(len(layout))
        ],
    }


def gfn_rank(layout: Layout, rank: int) -> Json:
    """A rank of a layout as torchgfn's `DistributedContext`."""
    return {
        "my_rank": rank,
        "world_size": len(layout),
        "num_training_ranks": len(layout.trainers),
        "agent_group_size": len(layout.agent_groups[0]),
        "agent_group_id": layout.agent_group_of(rank),
        "assigned_buffer": layout.buffer_of(rank),
        "assigned_training_ranks": list(layout.trainers_of(rank)) or None,
        "is_buffer_rank": layout.role(rank) == "buffer",
        "is_training_rank": layout.role(rank) == "trainer",
        "is_coordinator_rank": layout.role(rank) == "coordinator",
        "coordinator_rank": layout.coordinators[0] if layout.coordinators else None,
        "buffer_rank_set": sorted(layout.buffers),
        "training_ranks": list(layout.trainers),
    }


def gfn_groups(layout: Layout, seen: Callable[[Group], Json]) -> Json:
    """The groups of a layout as torchgfn's process groups are told on a rank, which sees each of them so."""
    numbers = range(len(layout.agent_groups))
    return {
        "agent": [seen(layout.agent_group(number)) for number in numbers],
        "train": seen(layout.train_group),
        "buffer": None if layout.buffer_group is None else seen(layout.buffer_group),
    }


def gfn_warning(warning: str) -> str:
    """What a warning of torchgfn's is about; the bridge's are worded otherwise and name ranks and hosts."""
    kinds = {
        "num_remote_buffers (": "buffer",
        "num_agent_groups (": "agent group",
        "Some selective-averaging": "agent group",
    }
    (kind,) = [kind for begin, kind in kinds.items() if warning.startswith(begin)]
    return kind


def gfn_plan(version: str, case: Case) -> Layout:
    """The layout that torchgfn was asked for."""
    inputs, world = case.inputs, case.world
    numbers = {
        "buffers": inputs["num_remote_buffers"],
        "agent_groups": inputs["num_agent_groups"],
        "coordinators": int(inputs["use_coordinator"]),
    }
    if version == "seed":
        return Layout.in_blocks(world, **numbers)
    return Layout.by_host(["one"] * world, **numbers)
