"""Collectives that are recorded and run again, on the fake backend."""

from __future__ import annotations

from typing import Any

import pytest
from tests.support.local_gang import LocalGang
from tests.support.waiting import until

from rankbridge_server.core.coordinator import ReduceOp
from rankbridge_server.core.errors import BridgeError, ErrorCode
from rankbridge_server.core.operations.agreements import Barrier, barrier
from rankbridge_server.core.operations.gathers import AllGather, Gather, GatherLayout, all_gather, gather
from rankbridge_server.core.operations.objects import AllGatherObject, all_gather_object
from rankbridge_server.core.operations.outcome import Packed
from rankbridge_server.core.operations.reductions import AllReduce, all_reduce
from rankbridge_server.core.programs.program import Replay
from rankbridge_server.core.programs.replays import replay
from rankbridge_server.core.refs.refs import Ref
from rankbridge_server.core.refs.tensors import Full

SIZE = 3


def begin(gang: LocalGang, name: str = "g") -> None:
    for rank in gang.ranks:
        rank.graphs.begin("", "world", name)


def end(gang: LocalGang) -> list[list[str]]:
    graphs = [rank.graphs.end("", "world") for rank in gang.ranks]
    return [[step.operation.name for step in graph.steps] for graph in graphs]


def replayed(gang: LocalGang, name: str = "g") -> list[Any]:
    return gang.run(replay, [Replay(name)] * SIZE)


def codes(outcomes: list[Any]) -> set[ErrorCode]:
    assert all(isinstance(it, BridgeError) for it in outcomes), outcomes
    return {it.failure.code for it in outcomes}


def add(gang: LocalGang, refs: list[Ref], *, in_place: bool = False) -> list[Any]:
    return gang.run(all_reduce, [AllReduce(ref.id, ReduceOp.SUM, in_place) for ref in refs])


def refs_held(gang: LocalGang) -> list[int]:
    return [sum(usage.refs for usage in rank.refs.usage()) for rank in gang.ranks]


def test_a_replay_reads_the_inputs_as_they_are_and_fills_the_same_refs(gang: LocalGang) -> None:
    inputs = gang.full(1)
    begin(gang)
    sums = add(gang, inputs)
    lists: list[Any] = gang.run(gather, [Gather(ref.id, 1, layout=GatherLayout.LIST) for ref in sums])
    gang.run(barrier, [Barrier()] * SIZE)
    gang.run(all_gather_object, [AllGatherObject(Packed(b"not recorded"))] * SIZE)
    assert end(gang) == [["all_reduce", "gather", "barrier"]] * SIZE
    held, before = refs_held(gang), gang.ranks[0].group("world").sequence
    for ref in inputs:
        cell = gang.ranks[ref.rank].refs.find("", ref.id)
        cell.tensor = gang.ranks[ref.rank].backend.tensors.create(ref.spec, Full(10.0 + ref.rank))
    assert replayed(gang) == [[sums[rank], lists[rank], None] for rank in range(SIZE)]
    assert [gang.floats(ref) for ref in sums] == [[33, 33]] * SIZE
    # In a replay, too, none sees what another gives.
    assert [gang.floats(ref) for ref in lists[1]] == [[3, 3]] * SIZE
    # A lane gives room back after it has answered.
    until(lambda: refs_held(gang) == held)
    assert gang.ranks[0].group("world").sequence == before + 1


def test_collectives_in_place_go_on_from_what_is_there(gang: LocalGang) -> None:
    refs = gang.full(1)
    begin(gang)
    add(gang, refs, in_place=True)
    end(gang)
    assert replayed(gang) == [[ref] for ref in refs]
    replayed(gang)
    assert [gang.floats(ref) for ref in refs] == [[27, 27]] * SIZE


def test_what_failed_is_not_recorded(gang: LocalGang) -> None:
    refs = gang.full(1)
    begin(gang)
    ops = [ReduceOp.SUM, ReduceOp.MAX, ReduceOp.SUM]
    args = [AllReduce(ref.id, op, False) for ref, op in zip(refs, ops, strict=True)]
    assert codes(gang.run(all_reduce, args)) == {ErrorCode.MISMATCH}
    gang.run(barrier, [Barrier()] * SIZE)
    assert end(gang) == [["barrier"]] * SIZE


def test_members_with_other_graphs_are_a_mismatch(gang: LocalGang) -> None:
    refs = gang.full(1)
    gang.ranks[0].graphs.begin("", "world", "g")
    add(gang, refs)
    for rank in gang.ranks[1:]:
        rank.graphs.begin("", "world", "g")
    gang.run(barrier, [Barrier()] * SIZE)
    end(gang)
    assert codes(replayed(gang)) == {ErrorCode.MISMATCH}


def test_a_graph_outlives_its_generation(gang: LocalGang) -> None:
    refs = gang.full(1)
    begin(gang)
    sums = add(gang, refs)
    end(gang)
    gang.form()
    assert replayed(gang) == [[ref] for ref in sums]


def test_a_released_ref_is_missed_by_name(gang: LocalGang) -> None:
    refs = gang.full(1)
    begin(gang)
    sums = add(gang, refs)
    end(gang)
    gang.ranks[0].refs.release("", [sums[0].id])
    outcomes = gang.run(replay, [Replay("g"), None, None])
    assert codes(outcomes) == {ErrorCode.RELEASED_REF}
    assert sums[0].id in str(outcomes[0])


def test_names_are_free_or_refused(gang: LocalGang) -> None:
    graphs = gang.ranks[0].graphs
    for name in ("", "x" * 129):
        with pytest.raises(BridgeError, match="1 to 128 bytes"):
            graphs.begin("", "world", name)
    with pytest.raises(BridgeError) as not_recording:
        graphs.end("", "world")
    graphs.begin("", "world", "a")
    with pytest.raises(BridgeError) as twice:
        graphs.begin("", "world", "b")
    with pytest.raises(BridgeError) as taken:
        graphs.begin("", "other", "a")
    graphs.end("", "world")
    with pytest.raises(BridgeError) as exists:
        graphs.begin("", "world", "a")
    found = [it.value.failure.code for it in (not_recording, twice, taken, exists)]
    assert found == [
        ErrorCode.UNKNOWN_GRAPH,
        ErrorCode.INVALID_ARGUMENT,
        ErrorCode.NAME_EXISTS,
        ErrorCode.NAME_EXISTS,
    ]
    graphs.release("", "a")
    graphs.begin("", "world", "a")


def test_unknown_empty_and_others_graphs_are_refused(gang: LocalGang) -> None:
    assert codes(replayed(gang)) == {ErrorCode.UNKNOWN_GRAPH}
    begin(gang)
    end(gang)
    assert codes(replayed(gang)) == {ErrorCode.INVALID_ARGUMENT}
    gang.ranks[0].open_session("mine", 0.0)
    assert codes(gang.run(replay, [Replay("g"), None, None], session_id="mine")) == {ErrorCode.UNKNOWN_GRAPH}


def test_graphs_end_with_their_session(gang: LocalGang) -> None:
    rank = gang.ranks[0]
    rank.open_session("mine", 0.0)
    rank.graphs.begin("mine", "world", "a")
    rank.graphs.end("mine", "world")
    rank.graphs.begin("mine", "world", "b")
    rank.close_session("mine")
    with pytest.raises(BridgeError):
        rank.graphs.find("mine", "a")
    assert not rank.graphs.recording("mine", "world")


def test_gathers_of_ragged_tensors_are_replayed(gang: LocalGang) -> None:
    refs = [gang.arange_on(rank, 10 * rank, (rank,)) for rank in range(SIZE)]
    begin(gang)
    gathered: list[Any] = gang.run(all_gather, [AllGather(ref.id, ragged=True) for ref in refs])
    end(gang)
    assert replayed(gang) == [[ref] for ref in gathered]
    assert [gang.floats(ref) for ref in gathered] == [[10, 20, 21]] * SIZE
