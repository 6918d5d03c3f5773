"""Where the bridge does another thing than what was recorded. Each has its row in `docs/conformance.md`.

A function takes what was recorded and gives what the bridge shall tell instead; it fails if the record is not what
the documentation says of it, so that a row cannot outlive its fact.
"""

from __future__ import annotations

from tests.conformance.recorded import Json

from rankbridge import Layout


def agent_group_of_others(recorded: Json, layout: Layout, rank: int, version: str) -> Json:
    """Ranks that do not train have an agent group in torchgfn as well; the bridge gives them none."""
    if layout.role(rank) == "trainer":
        return recorded
    told = recorded["agent_group_id"]
    if version == "seed":
        # Rank divided by the size of a group, whether there is such a group or not.
        assert told == rank // recorded["agent_group_size"]
    else:
        served = layout.trainers_of(rank)
        assert told == (layout.agent_group_of(served[0]) if served else 0)
    return {**recorded, "agent_group_id": None}


def coordinator_without_trainers(recorded: Json, layout: Layout, rank: int) -> Json:
    """A coordinator is a buffer that no trainer uses, in the older torchgfn; the bridge has it be one thing."""
    if layout.role(rank) != "coordinator" or recorded["assigned_training_ranks"] is None:
        return recorded
    assert recorded["assigned_training_ranks"] == []
    return {**recorded, "assigned_training_ranks": None}


def world_of_one(recorded: Json) -> Json:
    """A world of one has no groups in torchgfn; the bridge's gang of one has them, as any other."""
    if recorded["world_size"] > 1:
        return recorded
    assert recorded["agent_group_id"] is None
    assert recorded["groups_torch"] == {"agent": [], "train": None, "buffer": None}
    groups = {"agent": [[0]], "train": [0], "buffer": None}
    return {**recorded, "agent_group_id": 0, "groups_torch": groups}


def warnings_by_kind(recorded: list[str]) -> set[str]:
    """What torchgfn's warnings are about; the bridge's are worded otherwise and name ranks and hosts."""
    kinds = {
        "num_remote_buffers (": "buffer",
        "num_agent_groups (": "agent group",
        "Some selective-averaging": "agent group",
    }
    found = [[kind for begin, kind in kinds.items() if told.startswith(begin)] for told in recorded]
    assert all(len(kind) == 1 for kind in found)
    return {kind for (kind,) in found}


def gfn_recorded(recorded: Json, layout: Layout, rank: int, version: str) -> Json:
    """What torchgfn told on a rank, but for the differences."""
    recorded = world_of_one(recorded)
    recorded = agent_group_of_others(recorded, layout, rank, version)
    return coordinator_without_trainers(recorded, layout, rank)
