"""Meshes as plans: what is where, which groups there are, and what is refused."""

from __future__ import annotations

import itertools
import math

import pytest
from hypothesis import given, strategies as st

from rankbridge import InvalidArgumentError, Mesh, Place, RankOutOfRangeError


def test_ranks_are_laid_out_with_the_last_axis_fastest() -> None:
    mesh = Mesh.plan({"dp": 2, "tp": 3}, 6)
    assert [mesh.coordinates(rank) for rank in range(6)] == [
        {"dp": dp, "tp": tp} for dp, tp in itertools.product(range(2), range(3))
    ]
    assert mesh.lines("dp") == [(0, 3), (1, 4), (2, 5)]
    assert mesh.lines("tp") == [(0, 1, 2), (3, 4, 5)]
    assert [group.name for group in mesh.groups()] == [
        *("mesh/dp/0", "mesh/dp/1", "mesh/dp/2"),
        *("mesh/tp/0", "mesh/tp/1"),
    ]
    assert mesh.group("tp", 4).ranks == (3, 4, 5)
    assert mesh.member("tp", 4).rank_in_group == 1


def test_given_ranks_keep_their_order() -> None:
    mesh = Mesh.plan({"a": 2, "b": 2}, [7, 2, 5, 3], name="odd")
    assert mesh.lines("a") == [(7, 5), (2, 3)]
    assert mesh.coordinates(5) == {"a": 1, "b": 0}
    assert mesh.group("b", 3).name == "odd/b/1"
    assert 5 in mesh
    assert 0 not in mesh


def test_an_axis_of_size_1_has_a_group_for_each_rank() -> None:
    mesh = Mesh.plan({"dp": 2, "cp": 1}, 2)
    assert [(group.name, group.ranks) for group in mesh.groups("cp")] == [
        ("mesh/cp/0", (0,)),
        ("mesh/cp/1", (1,)),
    ]


def test_a_flattened_axis_stands_for_several() -> None:
    mesh = Mesh.plan(
        {"dp_replicate": 2, "tp": 2, "dp_shard": 2}, 8, flattened={"dp": ["dp_replicate", "dp_shard"]}
    )
    assert mesh.lines("dp") == [(0, 1, 4, 5), (2, 3, 6, 7)]
    assert mesh.size("dp") == 4
    assert mesh.member("dp", 6).rank_in_group == 2
    assert mesh.groups("dp")[1].name == "mesh/dp/1"


def test_one_axis_may_take_what_the_others_leave() -> None:
    assert Mesh.plan({"dp": -1, "tp": 2}, 6).shape == {"dp": 3, "tp": 2}
    assert Mesh.plan({"dp": -1}, 1).shape == {"dp": 1}


def test_the_local_axis_has_a_line_for_each_host() -> None:
    places = [Place(host=host, local_rank=0) for host in "abab"]
    mesh = Mesh.plan({"dp": 2, "tp": 2}, [3, 2, 1, 0], local=True, places=places)
    assert mesh.lines("local") == [(3, 1), (2, 0)]
    assert mesh.group("local", 0).name == "mesh/local/1"
    assert mesh.line("dp", 3) == (3, 1)
    assert mesh.line("tp", 3, within="local") == (3,)
    assert mesh.member("tp", 2).host == "b"


@given(st.lists(st.integers(1, 4), min_size=1, max_size=4))
def test_every_axis_parts_the_ranks_and_coordinates_find_them_again(sizes: list[int]) -> None:
    axes = {f"axis{place}": size for place, size in enumerate(sizes)}
    ranks = [rank * 3 + 1 for rank in reversed(range(math.prod(sizes)))]
    mesh = Mesh.plan(axes, ranks, flattened={"all": list(axes)})
    for rank in ranks:
        assert mesh.rank_at(mesh.coordinates(rank)) == rank
    for axis, size in axes.items():
        lines = mesh.lines(axis)
        assert sorted(itertools.chain(*lines)) == sorted(ranks)
        assert {len(line) for line in lines} == {size}
        for line in lines:
            assert [mesh.coordinates(rank)[axis] for rank in line] == list(range(size))
            others = [{**mesh.coordinates(rank), axis: 0} for rank in line]
            assert others == [others[0]] * size
    assert mesh.lines("all") == [tuple(ranks)]


@pytest.mark.parametrize(
    ("axes", "ranks", "message"),
    [
        ({"dp": 2, "tp": 4}, 6, "dp 2 x tp 4; expected 8 ranks, got 6"),
        ({"dp": -1, "tp": 4}, 6, r"dp \? x tp 4; expected a multiple of 4 ranks, got 6"),
        ({"tp": 1}, 2, "expected 1 rank, got 2"),
        ({}, 1, "one axis at least"),
        ({"dp": 0}, 0, "one axis at least"),
        ({"dp": 0}, 4, "size 1 or more"),
        ({"dp": -2}, 4, "size 1 or more"),
        ({"dp": -1, "tp": -1}, 4, "at most one of size -1"),
        ({"dp": 2}, [1, 1], "each rank once"),
        ({"dp": 2}, [0, -1], "each rank once"),
        ({"d/p": 2}, 2, "without '/'"),
        ({"": 2}, 2, "not empty"),
    ],
)
def test_axes_that_do_not_fit_are_refused(axes: dict[str, int], ranks: int | list[int], message: str) -> None:
    with pytest.raises(InvalidArgumentError, match=message):
        Mesh.plan(axes, ranks)


def test_bad_names_and_places_are_refused() -> None:
    axes = {"dp": 2, "tp": 1}
    wrong: list[dict[str, list[str]]] = [
        {"dp": ["dp", "tp"]},
        {"all": ["dp", "pp"]},
        {"all": []},
        {"all": ["dp", "dp"]},
    ]
    for flattened in wrong:
        with pytest.raises(InvalidArgumentError):
            Mesh.plan(axes, 2, flattened=flattened)
    with pytest.raises(InvalidArgumentError, match="bad names"):
        Mesh.plan(axes, 2, name="")
    with pytest.raises(InvalidArgumentError, match="one place for each rank"):
        Mesh.plan(axes, 2, local=True)
    with pytest.raises(InvalidArgumentError, match="bad names"):
        Mesh.plan({"local": 1}, 1, local=True, places=[Place(host="a", local_rank=0)])


def test_questions_that_have_no_answer_are_refused() -> None:
    mesh = Mesh.plan({"dp": 2}, 2)
    for ask in (lambda: mesh.lines("tp"), lambda: mesh.group("tp", 0), lambda: mesh.size("local")):
        with pytest.raises(InvalidArgumentError, match=r"there is no such axis; expected one of dp, got"):
            ask()
    for ask_rank in (mesh.coordinates, lambda rank: mesh.line("dp", rank)):
        with pytest.raises(InvalidArgumentError, match="rank 9 is not in it"):
            ask_rank(9)
    with pytest.raises(InvalidArgumentError, match="one coordinate for each axis"):
        mesh.rank_at({"dp": 0, "tp": 0})
    with pytest.raises(RankOutOfRangeError, match="0 to 1"):
        mesh.rank_at({"dp": 2})
