"""Collectives that are recorded and run again through the Python client, on real ranks."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from tests.support.gangs import RunningGang
from tests.unit.client.fronts import connected

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


def test_a_replay_reads_what_is_there_now_and_fills_the_refs_that_were_made(gang: Any, refs: Any) -> None:
    counts = gang.put([np.array([rank + 1]) for rank in range(4)])
    with gang.graph_capture() as graph:
        sums = gang.all_reduce(refs, in_place=True)
        gathered = gang.all_gather(counts)
        gang.barrier()
        reduced = gang.reduce(counts, dst_rank_in_group=2)
    assert graph.operations == ("all_reduce", "all_gather", "barrier", "reduce")
    assert (graph.group, graph.ranks) == ("world", (0, 1, 2, 3))
    assert lists(gang, sums) == [[6, 46]] * 4
    gang.all_reduce(counts, in_place=True)
    owned = gang.list_refs()
    again = gang.replay(graph)
    assert again == [sums, gathered, None, reduced]
    assert [ref.id for ref in again[0]] == [ref.id for ref in refs]
    assert lists(gang, refs) == [[24, 184]] * 4
    assert lists(gang, gathered) == [[10, 10, 10, 10]] * 4
    assert gang.get(reduced[2]).tolist() == [40]
    assert gang.list_refs() == owned
    assert gang.replay(graph.name) == again
    assert lists(gang, refs) == [[96, 736]] * 4


def test_what_was_submitted_gives_what_the_direct_replay_gives(gang: Any, refs: Any) -> None:
    with gang.graph_capture("sums") as graph:
        sums = gang.all_reduce(refs)
        gang.barrier()
    assert gang.submit("replay", graph).result() == [sums, None]
    submitted = gang.submit("replay", "sums")
    assert submitted.result() == [sums, None]
    assert [status.value for status in submitted.poll()] == [[ref, None] for ref in sums]


def test_a_group_is_recorded_by_itself(gang: Any, refs: Any) -> None:
    group = gang.new_group(f"odd-{uuid.uuid4().hex}", [3, 1])
    try:
        with gang.graph_capture(group=group) as odd, gang.graph_capture() as all_:
            sums = gang.all_reduce([refs[3], refs[1]], group=group)
            gang.barrier()
        assert (odd.group, odd.ranks, odd.operations) == (group.name, (3, 1), ("all_reduce",))
        assert all_.operations == ("barrier",)
        assert gang.replay(odd) == [sums]
        assert gang.replay(odd.name, group=group.name) == [sums]
        with pytest.raises(rankbridge.InvalidArgumentError, match="another group"):
            gang.replay(all_.name, group=group)
        assert gang.release_graph(odd.name).ranks == (1, 3)
    finally:
        gang.destroy_group(group)


def test_what_fails_inside_is_not_recorded_and_an_exception_keeps_nothing(gang: Any, refs: Any) -> None:
    unlike = gang.put([np.zeros(1 + rank % 2) for rank in range(4)])
    with gang.graph_capture("kept") as kept:
        with pytest.raises(rankbridge.MismatchError):
            gang.all_reduce(unlike)
        gang.all_reduce(refs)
    assert kept.operations == ("all_reduce",)

    def fails() -> None:
        with gang.graph_capture("dropped"):
            gang.all_reduce(refs)
            raise KeyError("inside")

    with pytest.raises(KeyError, match="inside"):
        fails()
    for ask in (gang.replay, gang.release_graph):
        with pytest.raises(rankbridge.UnknownGraphError):
            ask("dropped")
    with gang.graph_capture("dropped") as again:
        pass
    assert again.operations == ()
    with pytest.raises(rankbridge.InvalidArgumentError, match="the graph is empty"):
        gang.replay(again)


def test_a_recording_is_begun_on_all_members_or_on_none(gang: Any, refs: Any) -> None:
    other = gang[2].begin_capture("other")
    assert (other.ranks, other.operations) == ((2,), ())
    with pytest.raises(rankbridge.InvalidArgumentError, match="records in this group already"):
        gang.begin_capture("mine")
    for rank in (0, 1, 3):
        with pytest.raises(rankbridge.UnknownGraphError):
            gang[rank].end_capture()
    assert gang[2].end_capture() == other
    with gang.graph_capture("mine"):
        gang.barrier()
    with pytest.raises(rankbridge.NameExistsError):
        gang.begin_capture("mine")
    with pytest.raises(rankbridge.UnknownGraphError):
        gang.end_capture()
    gang.begin_capture("other graph")
    gang[1].end_capture()
    with pytest.raises(rankbridge.UnknownGraphError):
        gang.end_capture()
    for rank in (0, 2, 3):
        with pytest.raises(rankbridge.UnknownGraphError):
            gang[rank].release_graph("other graph")
    assert gang.release_graph("other graph").ranks == (1,)


def test_each_rank_records_and_replays_by_itself(gang: Any, refs: Any) -> None:
    graphs, refs_of = [], []
    begun = [rank.begin_capture("by rank") for rank in gang]
    sums = gang.all_reduce(refs)
    for rank, was in zip(gang, begun, strict=True):
        graph = rank.end_capture()
        assert (was.name, graph.operations, graph.ranks) == ("by rank", ("all_reduce",), (rank.rank,))
        graphs.append(graph)
    started = [rank.start("replay", graph) for rank, graph in zip(gang, graphs, strict=True)]
    refs_of = [it.result() for it in started]
    assert refs_of == [[ref] for ref in sums]
    assert [rank.release_graph(graph) for rank, graph in zip(gang, graphs, strict=True)] == graphs

    def fails() -> None:
        with gang[1].graph_capture("one") as graph:
            assert graph.name == "one"
            raise KeyError("inside")

    with pytest.raises(KeyError):
        fails()
    with pytest.raises(rankbridge.UnknownGraphError):
        gang[1].release_graph("one")
    with gang[1].graph_capture() as graph:
        begun_barriers = [rank.start("barrier", operation_id=graph.name) for rank in gang]
        assert [it.result() for it in begun_barriers] == [None] * 4
    assert graph.operations == ("barrier",)


def test_a_graph_belongs_to_its_session(gang: Any, refs: Any) -> None:
    with gang.graph_capture() as graph, gang.session():
        mine = gang.create("float32", 2)
        gang.all_reduce(mine)
        sums = gang.all_reduce(refs)
    assert graph.operations == ("all_reduce",), "what is done with refs of another session is not recorded"
    with gang.session():
        assert gang.replay(graph) == [sums]
        with pytest.raises(rankbridge.UnknownGraphError):
            gang.replay(graph.name)
    gang.release(refs)
    with pytest.raises(rankbridge.ReleasedRefError):
        gang.replay(graph)
    assert gang.release_graph(graph).operations == ("all_reduce",)
    with pytest.raises(rankbridge.UnknownGraphError):
        gang.release_graph(graph)
