"""Layouts, scans, several collectives at once, and what is made of them, through the Python client on real ranks."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from tests.support.gangs import RunningGang
from tests.unit.client.fronts import compat, connected

import rankbridge


@pytest.fixture(params=["sync", "async"])
def front(request: pytest.FixtureRequest) -> str:
    """Name of each front in turn."""
    name: str = request.param
    return name


@pytest.fixture(params=["fake4", "gloo4"])
def running(request: pytest.FixtureRequest) -> RunningGang:
    """A gang of four real ranks, on each backend in turn."""
    gang: RunningGang = request.getfixturevalue(request.param)
    return gang


@pytest.fixture
def gang(front: str, running: RunningGang) -> Iterator[Any]:
    """The gang, connected to by each front in turn."""
    with connected(front, running.description, timeout=60) as gang:
        yield gang


@pytest.fixture
def refs(gang: Any) -> Any:
    """Rank r holds [r, r + 10]."""
    return gang.put([np.array([rank, rank + 10], np.float32) for rank in range(4)])


def lists(gang: Any, refs: Any) -> list[Any]:
    """The elements on each member."""
    return [value.tolist() for value in gang.get(refs)]


ROWS = [[0.0, 10.0], [1.0, 11.0], [2.0, 12.0], [3.0, 13.0]]


def test_gathered_tensors_are_stacked(gang: Any, refs: Any) -> None:
    assert lists(gang, gang.all_gather(refs, layout="stacked")) == [ROWS] * 4
    columns = np.transpose(ROWS).tolist()
    for dim in (1, -1):
        assert lists(gang, gang.all_gather(refs, layout="stacked", dim=dim)) == [columns] * 4
    gathered = gang.gather(refs, dst_rank_in_group=2, layout="stacked")
    assert [ref and ref.rank for ref in gathered] == [None, None, 2, None]
    assert gang.get(gathered[2]).tolist() == ROWS


def test_gathered_tensors_are_listed(gang: Any, refs: Any) -> None:
    optimus = compat(gang, "optimus")
    for gathered in (gang.all_gather(refs, layout="list"), optimus.all_gather_to_list(refs)):
        assert [[ref.rank for ref in own] for own in gathered] == [[rank] * 4 for rank in range(4)]
        assert [lists(gang, own) for own in gathered] == [ROWS] * 4
    gathered = gang.gather(refs, dst_rank_in_group=1, layout="list")
    assert [own and lists(gang, own) for own in gathered] == [None, ROWS, None, None]


def test_shapes_that_nobody_knew_before_are_gathered(gang: Any) -> None:
    ragged = gang.put([np.full((rank, 2), rank, np.int32) for rank in range(4)])
    rows = [[1, 1], [2, 2], [2, 2], [3, 3], [3, 3], [3, 3]]
    assert lists(gang, gang.all_gather(ragged, dim=0, ragged=True)) == [rows] * 4
    gathered = gang.gather(ragged, dim=0, ragged=True)
    assert [ref and gang.get(ref).tolist() for ref in gathered] == [rows, None, None, None]
    unlike = gang.put([np.ones((1,) * rank) for rank in range(4)])
    for own in gang.all_gather(unlike, layout="list", ragged=True):
        assert [ref.shape for ref in own] == [(), (1,), (1, 1), (1, 1, 1)]
    with pytest.raises(rankbridge.MismatchError) as caught:
        gang.all_gather(ragged, dim=0)
    assert not caught.value.indefinite


def test_members_reduce_so_far(gang: Any, refs: Any, running: RunningGang) -> None:
    if "scan" not in gang[0].status().abilities.collectives:
        with pytest.raises(rankbridge.UnsupportedOperationError) as caught:
            gang.scan(refs)
        assert not caught.value.indefinite
        assert running.description["backend"] == "gloo"
        return
    assert lists(gang, gang.scan(refs)) == [[0, 10], [1, 21], [3, 33], [6, 46]]
    assert lists(gang, gang.scan(refs, exclusive=True)) == [[0, 0], [0, 10], [1, 21], [3, 33]]
    assert lists(gang, gang.submit("scan", refs, op="max").result()) == ROWS
    with pytest.raises(rankbridge.InvalidArgumentError):
        gang.scan(refs, op="max", exclusive=True)


def test_several_collectives_give_each_what_it_gives_alone(gang: Any, refs: Any) -> None:
    counts = gang.put([np.array([rank + 1]) for rank in range(4)])
    sums, gathered, no_result, reduced, stacks = gang.coalesce(
        [
            ("all_reduce", refs, {"op": "max"}),
            ("all_gather", counts),
            ("barrier",),
            ("reduce", refs, {"dst_rank_in_group": 3}),
            ("gather", counts, {"layout": "list"}),
        ]
    )
    assert lists(gang, sums) == [[3, 13]] * 4
    assert lists(gang, gathered) == [[1, 2, 3, 4]] * 4
    assert no_result is None
    assert [ref and gang.get(ref).tolist() for ref in reduced] == [None, None, None, [6, 46]]
    assert [own and lists(gang, own) for own in stacks] == [[[1], [2], [3], [4]], None, None, None]


def test_none_sees_what_another_does_in_place(gang: Any, refs: Any) -> None:
    sums, copies = gang.coalesce(
        [("all_reduce", refs, {"in_place": True}), ("broadcast", refs, {"src_rank_in_group": 1})]
    )
    assert sums == refs
    assert lists(gang, refs) == [[6, 46]] * 4
    assert lists(gang, copies) == [[1, 11]] * 4


def test_one_that_cannot_be_done_leaves_all_undone(gang: Any, refs: Any) -> None:
    unlike = gang.put([np.zeros(1 + rank % 2) for rank in range(4)])
    with pytest.raises(rankbridge.MismatchError) as caught:
        gang.coalesce([("all_reduce", refs, {"in_place": True}), ("all_reduce", unlike)])
    assert not caught.value.indefinite
    with pytest.raises(rankbridge.InvalidArgumentError, match="all_to_all"):
        gang.coalesce([("all_reduce", refs, {"in_place": True}), ("all_to_all", refs)])
    assert lists(gang, refs) == ROWS
    gang.barrier()


def test_each_rank_takes_part_by_itself_and_without_waiting(gang: Any, refs: Any) -> None:
    begun = [rank.start("coalesce", [("all_reduce", refs[rank.rank]), ("barrier",)]) for rank in gang]
    results = [it.result() for it in begun]
    assert lists(gang, [sums for sums, _ in results]) == [[6, 46]] * 4
    submitted = gang.submit("coalesce", [("all_reduce", refs), ("barrier",)])
    sums, no_result = submitted.result()
    assert (lists(gang, sums), no_result) == ([[6, 46]] * 4, None)
    assert gang.find(submitted.operation_id).result() == [[ref, None] for ref in sums]


def test_tensors_are_averaged_in_place_in_every_form(gang: Any, refs: Any) -> None:
    others = gang.put([np.full((2, 2), rank) * 1.0 for rank in range(4)])
    assert gang.average(refs) == refs
    assert lists(gang, refs) == [[1.5, 11.5]] * 4
    assert gang.average({"w": refs, "b": others, "tied": others}) == {"w": refs, "b": others, "tied": others}
    assert lists(gang, others) == [[[1.5, 1.5]] * 2] * 4
    given = [{"b": others[rank], "w": refs[rank]} for rank in range(4)]
    torchgfn = compat(gang, "torchgfn")
    for average in (gang.average, torchgfn.average_gradients, torchgfn.average_models):
        assert average(given) == given
    assert gang.average({}) == {}


def test_averages_are_over_the_group_and_not_over_the_gang(gang: Any, refs: Any) -> None:
    group = gang.new_group(f"pair-{uuid.uuid4().hex}", [1, 3])
    try:
        compat(gang, "torchgfn").average_models([{"w": refs[1]}, {"w": refs[3]}], group=group)
        assert lists(gang, refs) == [[0, 10], [2, 12], [2, 12], [2, 12]]
    finally:
        gang.destroy_group(group)


def test_maps_of_different_names_are_refused_and_nothing_is_averaged(gang: Any, refs: Any) -> None:
    given: list[dict[str, Any]] = [{"w": ref} for ref in refs]
    given[2] = {"v": refs[2]}
    with pytest.raises(rankbridge.InvalidArgumentError, match="different names") as caught:
        gang.average(given)
    assert caught.value.got == "at rank_in_group 2: [\"'v'\"]"
    integers = gang.put([np.arange(2)] * 4)
    with pytest.raises(rankbridge.UnsupportedDtypeError):
        gang.average({"w": refs, "n": integers})
    assert lists(gang, refs) == ROWS


def test_members_take_turns_on_real_ranks(gang: Any) -> None:
    order = []
    for turns in compat(gang, "olmo").do_n_at_a_time(3):
        for turn in turns:
            with turn:
                order.append(gang[turn.rank.rank].status().rank)
    assert order == [0, 2, 1, 3]
    assert [turns.ranks for turns in compat(gang, "olmo").do_n_at_a_time()] == [(0,), (1,), (2,), (3,)]


def test_ranks_tell_their_device_and_what_their_backend_supports(gang: Any) -> None:
    before = gang.list_refs()
    assert {rank.default_device() for rank in gang} == {"cpu"}
    assert compat(gang, "olmo").is_distributed() is True
    assert gang.list_refs() == before
    for status in gang.status():
        assert (status.backend_supports_cpu, status.backend_supports_cuda) == (True, False)
    members = gang.group("world").members
    assert [(it.is_master, it.is_local_master) for it in members] == [(True, True)] + [(False, False)] * 3
