"""vLLM's GroupCoordinator over a gang, through the Python client on real ranks."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from tests.support.gangs import RunningGang
from tests.unit.client.fronts import connected, coordinator

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
def pairs(gang: Any) -> Iterator[Any]:
    """Ranks 0 and 2, and ranks 3 and 1."""
    it = coordinator(gang, [[0, 2], [3, 1]], group_name=f"tp-{uuid.uuid4().hex}")
    yield it
    it.destroy()


@pytest.fixture
def partial(gang: Any) -> Iterator[Any]:
    """Ranks 3 and 0, rank 1 alone, and rank 2 in no group."""
    it = coordinator(gang, [[3, 0], [1]])
    yield it
    it.destroy()


@pytest.fixture
def refs(gang: Any) -> Any:
    """Rank r holds [r, r + 10]."""
    return gang.put([np.array([rank, rank + 10], np.float32) for rank in range(4)])


def lists(gang: Any, refs: Any) -> list[Any]:
    """The elements on each rank, None where there is nothing."""
    return [None if ref is None else gang.get(ref).tolist() for ref in refs]


def test_members_know_their_groups(pairs: Any, partial: Any, gang: Any) -> None:
    name = pairs.groups[0].name.removesuffix("/0")
    assert [(it.name, it.ranks) for it in pairs.groups] == [(f"{name}/0", (0, 2)), (f"{name}/1", (3, 1))]
    told = [
        (it.rank, it.rank_in_group, it.world_size, it.first_rank, it.last_rank, it.next_rank, it.prev_rank)
        for it in map(pairs.member, range(4))
    ]
    assert told == [
        (0, 0, 2, 0, 2, 2, 2),
        (1, 1, 2, 3, 1, 3, 3),
        (2, 1, 2, 0, 2, 0, 0),
        (3, 0, 2, 3, 1, 1, 1),
    ]
    assert [pairs.member(rank).is_first_rank for rank in range(4)] == [True, False, False, True]
    assert [pairs.member(rank).local_rank for rank in range(4)] == [0, 1, 2, 3]
    assert [pairs.member(rank).fs_local_rank for rank in range(4)] == [rank.fs_local_rank() for rank in gang]
    assert [group.ranks for group in partial.groups] == [(3, 0), (1,)]
    with pytest.raises(rankbridge.InvalidArgumentError, match="rank 2 is in none of the groups"):
        partial.member(2)


def test_collectives_run_in_all_groups_at_once_with_lists_by_rank(pairs: Any, gang: Any, refs: Any) -> None:
    assert lists(gang, pairs.all_reduce(refs)) == [[2, 22], [4, 24], [2, 22], [4, 24]]
    assert lists(gang, pairs.all_gather(refs)) == [[0, 10, 2, 12], [3, 13, 1, 11]] * 2
    assert lists(gang, pairs.reduce_scatter(refs)) == [[2], [24], [22], [4]]
    assert lists(gang, pairs.gather(refs, 1)) == [None, [3, 13, 1, 11], [0, 10, 2, 12], None]
    assert lists(gang, pairs._all_reduce_out_place(refs)) == [[2, 22], [4, 24], [2, 22], [4, 24]]
    assert lists(gang, pairs._all_gather_out_place(refs, 0)) == [[0, 10, 2, 12], [3, 13, 1, 11]] * 2
    assert lists(gang, pairs._reduce_scatter_out_place(refs, -1)) == [[2], [24], [22], [4]]
    assert pairs.barrier() is None
    assert lists(gang, refs) == [[0, 10], [1, 11], [2, 12], [3, 13]]
    rows = gang.put([np.full((2, 1), rank) for rank in range(4)])
    assert lists(gang, pairs.all_gather(rows)) == [[[0, 2]] * 2, [[3, 1]] * 2] * 2
    assert lists(gang, pairs.gather(rows, dim=0)) == [[[0], [0], [2], [2]], None, None, [[3], [3], [1], [1]]]
    assert pairs.broadcast(refs, 1) == refs
    assert lists(gang, refs) == [[2, 12], [1, 11], [2, 12], [1, 11]]


def test_sizes_are_by_rank(pairs: Any, gang: Any) -> None:
    sizes = [1, 0, 2, 3]
    parts = gang.put([np.full((size, 2), rank, np.float32) for rank, size in enumerate(sizes)])
    first, second = [[0, 0], [2, 2], [2, 2]], [[3, 3]] * 3
    assert lists(gang, pairs.all_gatherv(parts, 0, sizes)) == [first, second] * 2
    several = pairs.all_gatherv([[part, part] for part in parts], sizes=sizes)
    assert [lists(gang, own) for own in several] == [[first] * 2, [second] * 2] * 2
    whole = gang.put([np.full((3, 2), rank + 1, np.float32) for rank in range(4)])
    for got in (pairs.reduce_scatterv(whole, 0, sizes), pairs.combine(whole, sizes=sizes)):
        assert lists(gang, got) == [[[4, 4]], [], [[4, 4]] * 2, [[6, 6]] * 3]
    dispatched = pairs.dispatch(parts, parts, sizes=sizes)
    assert [lists(gang, own) for own in dispatched] == [[first] * 2, [second] * 2] * 2
    hidden, logits, extra = pairs.dispatch(parts, parts, True, [[part] for part in parts], sizes=sizes)[3]
    assert lists(gang, [hidden, logits, *extra]) == [second] * 3
    with pytest.raises(rankbridge.InvalidArgumentError, match="sizes is by rank"):
        pairs.all_gatherv(parts, 0, [1, 2])
    with pytest.raises(rankbridge.InvalidArgumentError, match="different numbers of tensors"):
        pairs.all_gatherv([[part] * (1 + rank) for rank, part in enumerate(parts)])
    with pytest.raises(rankbridge.InvalidArgumentError, match="nothing to coalesce"):
        pairs.all_gatherv([[]] * 4)


def test_the_gang_itself_can_be_the_group(gang: Any) -> None:
    world = coordinator(gang, [range(4)])
    sizes = [2, 0, 1, 3]
    tokens = gang.put([np.full((size, 2), rank, np.float32) for rank, size in enumerate(sizes)])
    counts = gang.put([np.arange(size) for size in sizes])
    every = [[0, 0], [0, 0], [2, 2], [3, 3], [3, 3], [3, 3]]
    numbers = [0, 1, 0, 0, 1, 2]
    for both in world.all_gatherv([list(own) for own in zip(tokens, counts, strict=True)], sizes=sizes):
        assert lists(gang, both) == [every, numbers]
    whole = gang.put([np.full((6, 2), rank + 1, np.float32) for rank in range(4)])
    assert lists(gang, world.combine(whole, sizes=sizes)) == [[[10, 10]] * size for size in sizes]
    dispatched = world.dispatch(tokens, tokens, False, [[each] for each in counts], sizes=sizes)
    for hidden, logits, extra in dispatched:
        assert lists(gang, [hidden, logits, *extra]) == [every, every, numbers]
    world.destroy()


def test_values_are_the_sources(pairs: Any, gang: Any, refs: Any) -> None:
    assert pairs.broadcast_object(["a", "b", "c", {"d": 1}]) == ["a", {"d": 1}, "a", {"d": 1}]
    assert pairs.broadcast_object([None, "b", [2], None], 1) == [[2], "b", [2], "b"]
    assert pairs.broadcast_object() == [None] * 4
    assert pairs.broadcast_object_list([[0], None, None, (3, None)]) == [[0], [3, None]] * 2
    got = pairs.broadcast_tensor_dict([{"t": refs[0], "n": 1}, None, None, {}])
    assert [it.get("n") for it in got] == [1, None, 1, None]
    assert (got[2]["t"].rank, gang.get(got[2]["t"]).tolist()) == (2, [0, 10])
    with pytest.raises(rankbridge.InvalidArgumentError, match="metadata_group"):
        pairs.broadcast_tensor_dict([{}] * 4, 0, None, "world")
    with pytest.raises(rankbridge.InvalidArgumentError, match="takes a map"):
        pairs.broadcast_tensor_dict([[1], None, None, {}])
    with pytest.raises(rankbridge.RankOutOfRangeError):
        pairs.broadcast_object(["x"] * 4, 2)


def test_sends_are_received(pairs: Any, gang: Any, refs: Any) -> None:
    sent = pairs.isend(refs)
    received = pairs.recv(2, "float32")
    assert [(ref.rank, ref.shape) for ref in received] == [(rank, (2,)) for rank in range(4)]
    assert lists(gang, received) == [[2, 12], [3, 13], [0, 10], [1, 11]]
    assert [work.wait() for work in sent] == [None] * 4
    begun = pairs.irecv((2,), "float32", src=1)
    assert [work is not None for work in begun] == [True, False, False, True]
    assert pairs.send([None, refs[1], refs[2], None], 0) == [None] * 4
    assert [begun[rank].wait()[1] for rank in (0, 3)] == [1, 1]
    sent = pairs.isend_object(["zero", None, None, None], 1, ranks=[0])
    assert pairs.recv_object(0, ranks=[2]) == [None, None, "zero", None]
    assert sent[0].wait() is None
    begun = pairs.irecv_object(1)
    assert pairs.send_object([None, "one", None, None], 0) == [None] * 4
    assert [begun[rank].wait() for rank in (0, 3)] == [(None, 1), ("one", 1)]
    sent = pairs.isend_tensor_dict([{"t": refs[0]}, None, None, None], None, "group", {"t": True})
    got = pairs.recv_tensor_dict(0, ranks=[2])
    assert (got[2]["t"].rank, gang.get(got[2]["t"]).tolist()) == (2, [0, 10])
    begun = pairs.irecv_tensor_dict(ranks=[1])
    assert pairs.send_tensor_dict([None, None, None, {"k": 3}]) == [None] * 4
    assert begun[1].wait() == ({"k": 3}, 0)
    assert sent[0].wait() is None


def test_what_nobody_can_send_is_refused_before_anything_is_sent(pairs: Any, refs: Any) -> None:
    with pytest.raises(rankbridge.InvalidArgumentError, match="dst is the rank itself"):
        pairs.isend(refs, 0)
    with pytest.raises(rankbridge.InvalidArgumentError, match="src is the rank itself"):
        pairs.recv_object(0, ranks=[0])
    with pytest.raises(rankbridge.RankOutOfRangeError):
        pairs.send_object([1] * 4, 2)
    with pytest.raises(rankbridge.InvalidArgumentError, match="a ref of its own"):
        pairs.isend([refs[1], None, None, None])
    with pytest.raises(rankbridge.PeerMissingError):
        pairs.recv_object(0, timeout=1.0)


def test_what_was_begun_is_taken_back_if_not_all_can_begin(pairs: Any, gang: Any, refs: Any) -> None:
    released = gang[3].put(np.zeros(1))
    gang.release(released)
    with pytest.raises(rankbridge.ReleasedRefError):
        pairs.isend([refs[0], None, None, released])
    with pytest.raises(rankbridge.PeerMissingError):
        pairs.recv(2, "float32", 0, ranks=[2], timeout=1.0)


def test_who_is_alone_gets_back_what_it_gave(partial: Any, gang: Any, refs: Any) -> None:
    given = [refs[0], refs[1], None, refs[3]]
    assert lists(gang, partial.all_reduce(given)) == [[3, 23], [1, 11], None, [3, 23]]
    for call in (
        partial.all_reduce,
        lambda given: partial.all_gather(given, 0),
        partial.reduce_scatter,
        lambda given: partial.gather(given, 1, 0),
        partial.broadcast,
        partial.all_gatherv,
        partial.reduce_scatterv,
        partial.combine,
    ):
        result = call(given)
        assert (result[1], result[2]) == (refs[1], None)
    pair = partial.dispatch(given, given)[1]
    assert pair == (refs[1], refs[1])
    assert partial.broadcast_object(["a", "b", "c", "d"]) == ["d", "b", None, "d"]
    assert partial.broadcast_object_list([["a"], ["b"], None, ["d"]]) == [["d"], ["b"], None, ["d"]]
    mine = {"t": refs[1]}
    assert partial.broadcast_tensor_dict([None, mine, None, {}]) == [{}, mine, None, {}]
    sent = partial.isend([None, refs[1], None, refs[3]])
    assert [work is not None for work in sent] == [False, False, False, True]
    assert [ref and ref.rank for ref in partial.recv(2, "float32", 0, ranks=[0, 1])] == [0, None, None, None]
    assert sent[3].wait() is None
    assert partial.send_tensor_dict([None, mine, None, None], 5, ranks=[1]) == [None, mine, None, None]
    assert partial.recv_tensor_dict(ranks=[1]) == [None] * 4
    for call in (
        lambda: partial.send_object(["x"] * 4, 0, ranks=[1]),
        lambda: partial.recv_object(0, ranks=[1]),
    ):
        with pytest.raises(rankbridge.InvalidArgumentError, match="is the rank itself"):
            call()
    with pytest.raises(rankbridge.RankOutOfRangeError):
        partial.broadcast(given, 1)
    assert partial.barrier() is None


def test_lists_that_are_not_by_rank_are_refused(partial: Any, refs: Any) -> None:
    for given in (refs[0], refs[:3], [*refs, refs[0]]):
        with pytest.raises(rankbridge.InvalidArgumentError, match="by rank of the gang"):
            partial.all_reduce(given)
    for given in (refs, [None, *refs[1:2], None, refs[3]]):
        with pytest.raises(rankbridge.InvalidArgumentError, match="each member gives something"):
            partial.all_reduce(given)
    with pytest.raises(rankbridge.InvalidArgumentError, match="by rank of the gang"):
        partial.broadcast_object("abcd")


def test_what_fails_in_one_group_is_told_with_what_the_others_did(pairs: Any, gang: Any) -> None:
    unlike = gang.put([np.zeros(size) for size in (1, 1, 2, 1)])
    with pytest.raises(rankbridge.MismatchError) as caught:
        pairs.all_reduce(unlike)
    error = caught.value
    assert isinstance(error, rankbridge.GangError)
    assert [(it.rank, it.error is None) for it in error.outcomes] == [
        (0, False),
        (2, False),
        (3, True),
        (1, True),
    ]
    assert error.indefinite
    assert error.group == pairs.groups[0].name
    assert lists(gang, pairs.all_reduce(gang.create("int8", 1))) == [[0]] * 4


def test_buffers_are_made_on_members(partial: Any) -> None:
    made = partial.prepare_communication_buffer_for_model(
        [{"name": "w", "shape": (2, 3), "dtype": "float16"}]
    )
    assert [own and {dtype: (ref.rank, ref.shape) for dtype, ref in own.items()} for own in made] == [
        {"float16": (0, (6,))},
        {"float16": (1, (6,))},
        None,
        {"float16": (3, (6,))},
    ]
    model = [
        {"name": "w", "dtype": "float32", "shape": (3, 4)},
        {"name": "v", "dtype": "float32", "shape": [5]},
        {"name": "scale", "dtype": "bfloat16", "shape": ()},
    ]
    several = partial.prepare_communication_buffer_for_model(model)[3]
    assert {dtype: (ref.dtype, ref.shape) for dtype, ref in several.items()} == {
        "float32": ("float32", (12,)),
        "bfloat16": ("bfloat16", (1,)),
    }
    assert partial.prepare_communication_buffer_for_model([]) == [{}, {}, None, {}]
    for wrong in ([{"name": "w", "dtype": "float32"}], ["w"]):
        with pytest.raises(rankbridge.InvalidArgumentError, match="description"):
            partial.prepare_communication_buffer_for_model(wrong)


def test_buffers_are_made_on_all_members_or_none(pairs: Any, gang: Any) -> None:
    before = gang.list_refs()
    huge = [
        {"name": "small", "dtype": "int8", "shape": (1,)},
        {"name": "huge", "dtype": "float64", "shape": (2**50,)},
    ]
    with pytest.raises(rankbridge.ResourceExhaustedError):
        pairs.prepare_communication_buffer_for_model(huge)
    assert gang.list_refs() == before


def test_groups_have_queues(pairs: Any, gang: Any) -> None:
    queues = pairs.create_mq_broadcaster(1)
    assert [(queue.ranks, queue.writer_rank_in_group) for queue in queues] == [((0, 2), 1), ((3, 1), 1)] * 2
    queues[0].enqueue("for rank 0")
    queues[1].enqueue("for rank 3")
    assert [queues[2].dequeue(), queues[3].dequeue()] == ["for rank 0", "for rank 3"]
    queues = pairs.create_single_reader_mq_broadcasters(max_chunks=2)
    assert [queue is not None for queue in queues] == [False, True, True, False]
    queues[2].enqueue("to rank 0")
    assert gang[0].dequeue(queues[2]) == "to rank 0"
    with pytest.raises(rankbridge.InvalidArgumentError, match="external_writer_handle"):
        pairs.create_mq_broadcaster(0, "handle")
    with pytest.raises(rankbridge.RankOutOfRangeError):
        pairs.create_mq_broadcaster(2)


def test_objects_go_through_queues_if_wanted(gang: Any) -> None:
    made = coordinator(gang, [[2, 3, 1], [0]], use_message_queue_broadcaster=True)
    try:
        assert [len(rank.queues()) for rank in gang] == [0, 1, 1, 1]
        assert made.broadcast_object(["zero", None, {"two": 2}, None]) == ["zero", *[{"two": 2}] * 3]
        assert made.broadcast_object_list([[0], None, [2], None]) == [[0], [2], [2], [2]]
        (queue,) = gang[2].queues()
        gang[2].enqueue(queue, "left by a broadcast that failed")
        assert made.broadcast_object(["zero", None, "next", None]) == ["zero", *["next"] * 3]
        assert made.broadcast_object([0, None, ("a", "b"), None]) == [0, *[("a", "b")] * 3]
        with pytest.raises(rankbridge.InvalidArgumentError, match="written by rank_in_group 0"):
            made.broadcast_object([1] * 4, 1)
    finally:
        made.destroy()
    assert [rank.queues() for rank in gang] == [[]] * 4


def test_groups_are_recorded(pairs: Any, gang: Any, refs: Any) -> None:
    with pairs.graph_capture() as graphs:
        sums = pairs.all_reduce(refs)
    assert graphs[0] is graphs[2]
    assert [graph.operations for graph in graphs] == [("all_reduce",)] * 4
    assert gang.replay(graphs[3]) == [[sums[3], sums[1]]]
    with (
        pytest.raises(rankbridge.InvalidArgumentError, match="graph_capture_context"),
        pairs.graph_capture(1),
    ):
        pass


def test_groups_are_made_all_or_none(gang: Any, running: RunningGang) -> None:
    before = [group.name for group in gang.groups()]
    backend = running.description["backend"]
    with pytest.raises(rankbridge.InvalidArgumentError, match=f"the gang's backend is '{backend}'"):
        coordinator(gang, [[0, 1]], None, "nccl")
    for ranks in ([[0, 1], [1, 2]], [[0, 0, 1]], []):
        with pytest.raises(rankbridge.InvalidArgumentError):
            coordinator(gang, ranks)
    with pytest.raises(rankbridge.RankOutOfRangeError):
        coordinator(gang, [[0, 4]])
    made = coordinator(gang, [[0, 1, 2, 3]], None, backend, False, True, f"dp-{uuid.uuid4().hex}")
    name = made.groups[0].name.removesuffix("/0")
    with pytest.raises(rankbridge.GroupExistsError):
        coordinator(gang, [[2], [3]], group_name=name)
    assert [group.name for group in gang.groups()] == sorted([*before, f"{name}/0"])
    assert made.destroy() is None
    with pytest.raises(rankbridge.UnknownGroupError):
        made.barrier()
    assert [group.name for group in gang.groups()] == before


def test_threads_that_share_a_coordinator_never_mismatch_with_gang_calls(running: RunningGang) -> None:
    def program(pairs: rankbridge.GroupCoordinator, mine: rankbridge.Gang) -> list[list[float]]:
        refs = mine.put([np.full(1, rank, np.float32) for rank in range(4)])
        sums = [pairs.all_reduce(refs) for _ in range(25)]
        return [[float(np.asarray(it)[0]) for it in mine.get([ref for ref in each if ref])] for each in sums]

    with (
        rankbridge.connect(running.description, timeout=10, calls="gang") as gang,
        ThreadPoolExecutor(2) as threads,
    ):
        pairs = rankbridge.GroupCoordinator.new(gang, [[0, 1], [2, 3]], group_name=f"tp-{uuid.uuid4().hex}")
        done = [threads.submit(program, pairs, gang) for _ in range(2)]
        assert [it.result(60) for it in done] == [[[1.0, 1.0, 5.0, 5.0]] * 25] * 2
        pairs.destroy()
