"""Groups that end and are made again, through the Python client, on real ranks."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.support.gangs import RunningGang, up

import rankbridge
from rankbridge import Gang

SIZE = 4


@pytest.fixture(params=[("fake4", "ranks"), ("fake4", "gang"), ("gloo4", "ranks"), ("gloo4", "gang")])
def gang(request: pytest.FixtureRequest) -> Iterator[Gang]:
    fixture, calls = request.param
    running: RunningGang = request.getfixturevalue(fixture)
    with rankbridge.connect(running.description, calls=calls) as it:
        yield it


@pytest.fixture
def own(tmp_path: Path) -> Iterator[Gang]:
    """Ranks that a test may form again."""
    with up(tmp_path, SIZE, "fake") as running, rankbridge.connect(running.description) as it:
        yield it


def groups(gang: Gang, prefix: str) -> dict[str, tuple[int, ...]]:
    """Those whose names begin so."""
    return {it.name: it.ranks for it in gang.groups() if it.name.startswith(prefix)}


def gathered(gang: Gang, group: rankbridge.Group) -> list[list[int]]:
    refs = gang.put([np.array([rank]) for rank in group.ranks], group=group)
    results: Any = gang.get(gang.all_gather(refs, group=group))
    return [it.tolist() for it in results]


def test_a_group_that_was_ended_is_made_again_with_the_same_ranks_or_others(gang: Gang) -> None:
    name = uuid.uuid4().hex
    for ranks in [(3, 1), (3, 1), (0, 2), (2, 1, 0), (3,)]:
        group = gang.new_group(name, ranks)
        assert groups(gang, name) == {name: ranks}
        assert gathered(gang, group) == [list(ranks)] * len(ranks)
        gang.destroy_group(group)
        assert groups(gang, name) == {}


def test_the_name_of_a_group_that_exists_is_refused_to_every_rank(gang: Gang) -> None:
    name = uuid.uuid4().hex
    group = gang.new_group(name, [3, 1])
    with pytest.raises(rankbridge.GangError) as caught:
        gang.new_group(name, [0, 2])
    errors = [it.error for it in caught.value.outcomes]
    assert [type(error) for error in errors] == [rankbridge.GroupExistsError] * SIZE
    assert [(detail.rank, detail.state) for error in errors if error for detail in error.ranks] == [
        (1, "failed"),
        (3, "failed"),
    ] * SIZE
    with pytest.raises(rankbridge.GroupExistsError, match="1 of 1 groups exist already"):
        gang.new_groups([(name, [0, 2])])
    assert groups(gang, name) == {name: (3, 1)}
    assert gathered(gang, group) == [[3, 1]] * 2
    gang.destroy_group(group)


def test_a_group_that_may_exist_is_given_where_it_has_the_same_ranks(gang: Gang) -> None:
    name = uuid.uuid4().hex
    made = gang.new_group(name, [3, 1], exist_ok=True)
    there = gang.new_group(name, (3, 1), exist_ok=True)
    assert (there.name, there.ranks, there.generation) == (made.name, made.ranks, made.generation)
    for others in [(1, 3), (3,), (0, 2)]:
        with pytest.raises(
            rankbridge.GroupExistsError, match="end it, take another name, or ask for it with"
        ):
            gang.new_group(name, others, exist_ok=True)
    with pytest.raises(rankbridge.GroupExistsError):
        gang.new_group(name, [3, 1])
    assert gathered(gang, there) == [[3, 1]] * 2
    gang.destroy_group(there)


def test_a_mesh_that_was_ended_is_made_again(gang: Gang) -> None:
    name = uuid.uuid4().hex
    for axes in ({"dp": 2, "tp": 2}, {"dp": 2, "tp": 2}, {"dp": 1, "tp": 4}, {"dp": 4, "tp": 1}):
        mesh = gang.new_mesh(axes, name=name)
        assert groups(gang, name) == {group.name: group.ranks for group in mesh.groups()}
        line = mesh.group("tp", 3)
        assert gathered(gang, line) == [list(line.ranks)] * len(line)
        gang.destroy_groups(mesh.groups())
        assert groups(gang, name) == {}


def test_what_was_ended_is_not_there_in_the_next_generation(own: Gang) -> None:
    mesh = own.new_mesh({"dp": 2, "tp": 2})
    own.destroy_groups(mesh.groups("dp"))
    own.destroy_group(own.new_group("pair", [3, 1]))
    own.form()
    assert groups(own, "") == {
        "world": (0, 1, 2, 3),
        **{group.name: group.ranks for group in mesh.groups("tp")},
    }
    own.destroy_groups(mesh.groups())
    own.form()
    assert groups(own, "") == {"world": (0, 1, 2, 3)}
    assert gathered(own, own.new_mesh({"dp": 2, "tp": 2}).group("dp", 1)) == [[1, 3]] * 2
