"""Every recorded case about ranks, groups, meshes and layouts that the pure code answers. No rank is asked."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from fnmatch import fnmatchcase

import pytest
from tests.conformance import forms, tables
from tests.conformance.judge import judge
from tests.conformance.moments import Moment
from tests.conformance.recorded import Case, cases
from tests.conformance.replays import replay_of
from tests.conformance.systems import gfn_layouts, olmo, optimus
from tests.conformance.systems.vllm import by_version

from rankbridge import Group, Place

TABLE = tables.read()
SUITES = (
    *("gfn_context_head", "gfn_context_seed", "gfn_layout", "gfn_ops", "gfn_p2p", "hazards"),
    *("olmo", "olmo_nondist", "optimus_fake", "optimus_mesh", "optimus_ops", "vllm"),
)

PURE: tuple[tuple[str, str, Callable[[Case], Iterator[Moment]]], ...] = (
    ("optimus_mesh", "mesh_table", optimus.planned_table),
    ("optimus_mesh", "mesh_ctor_error", optimus.planned_ctor_error),
    ("gfn_layout", "*", gfn_layouts.planned_layout),
    ("gfn_context_seed", "initialize_distributed_compute", gfn_layouts.planned_context),
    ("gfn_context_head", "initialize_distributed_compute", gfn_layouts.planned_context),
    ("olmo", "get_mesh_coordinates", olmo.planned_coordinates),
    ("olmo", "get_mesh_coordinates_custom", olmo.planned_custom_coordinates),
)
"""By file and pattern of the name, what the pure code tells of a case."""


@pytest.mark.parametrize("suite", SUITES)
def test_every_case_can_be_replayed(suite: str) -> None:
    assert cases(suite)
    assert [case for case in cases(suite) if replay_of(case) is None] == []


@pytest.mark.parametrize(("suite", "name", "told_of"), PURE, ids=lambda it: it if isinstance(it, str) else "")
def test_what_is_told_without_asking(
    suite: str, name: str, told_of: Callable[[Case], Iterator[Moment]]
) -> None:
    found = [case for case in cases(suite) if fnmatchcase(case.name, name)]
    assert found
    for case in found:
        verdict = judge(case, told_of(case), TABLE)
        assert verdict.failures == (), case


@pytest.mark.parametrize(
    "case", [case for case in cases("vllm") if case.name.startswith(("props/", "nodes/"))], ids=str
)
def test_vllm_members_of_groups(case: Case) -> None:
    for built in case.data["groups"]:
        groups = [
            Group(
                name="g",
                ranks=tuple(ranks),
                # All ranks were on one host.
                places=tuple(Place(host="a", local_rank=rank) for rank in ranks),
            )
            for ranks in built["group_ranks"]
        ]
        for rank, answer in enumerate(by_version(case)[-1]):
            recorded = answer["ctor"][built["as"]]["ok"]
            (group,) = [one for one in groups if rank in one]
            ours = forms.vllm_member(group, rank)
            assert {key: recorded[key] for key in ours} == ours
        if case.name.startswith("nodes/"):
            reported = forms.vllm_nodes(groups[0])
            assert [answer["steps"] for answer in by_version(case)[-1]] == [[{"ok": reported}]] * case.world
