"""What a gang does with four sidecars, through the blocking and the asyncio front."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import grpc
import numpy as np
import pytest
from tests.unit.client.fronts import compat
from tests.unit.client.sidecars import Sidecar, SidecarGang

import rankbridge
from rankbridge import ErrorCode
from rankbridge.v1 import (
    collective_service_pb2,
    dtype_pb2,
    group_service_pb2,
    rank_service_pb2,
    ref_service_pb2 as ref_pb,
)


def _floats(count: int, start: float = 0) -> np.ndarray[Any, np.dtype[np.float32]]:
    return np.arange(start, start + count, dtype=np.float32)


def test_a_tensor_put_on_each_rank_comes_back_from_each(gang: Any) -> None:
    values = [_floats(3, rank) for rank in range(4)]
    refs = gang.put(values)
    assert [ref.rank for ref in refs] == [0, 1, 2, 3]
    assert {(ref.dtype, ref.shape, ref.device, ref.nbytes) for ref in refs} == {("float32", (3,), "cpu", 12)}
    for value, fetched in zip(values, gang.get(refs), strict=True):
        np.testing.assert_array_equal(value, fetched)
    np.testing.assert_array_equal(gang.get(refs[2]), values[2])
    np.testing.assert_array_equal(gang[3].get(refs[3]), values[3])


def test_a_tensor_of_many_chunks_comes_back_bit_for_bit(gang: Any) -> None:
    value = np.random.default_rng(1).integers(0, 256, (3 << 20) + 17, np.uint8)
    refs = gang.put_same(value)
    for fetched in gang.get(refs):
        np.testing.assert_array_equal(value, fetched)
    assert gang.get(refs[0]).flags.writeable


@pytest.mark.parametrize("shape", [(), (0,), (2, 0, 3), (1, 1)])
def test_odd_shapes_come_back(gang: Any, shape: tuple[int, ...]) -> None:
    fetched = gang[1].get(gang[1].put(np.ones(shape, np.int16)))
    assert fetched.shape == shape
    assert fetched.dtype == np.int16


def test_a_dtype_that_numpy_lacks_comes_back_as_a_tensor(gang: Any) -> None:
    value = rankbridge.Tensor("bfloat16", (2,), b"\x80\x3f\x00\x40")
    fetched = gang[0].get(gang[0].put(value))
    assert isinstance(fetched, rankbridge.Tensor)
    assert fetched == value
    assert gang[0].get(gang[0].put(_floats(2)), to="tensor").dtype == "float32"


def test_torch_tensors_go_in_and_come_out(gang: Any) -> None:
    torch = pytest.importorskip("torch")
    value = torch.arange(6, dtype=torch.bfloat16).reshape(2, 3).t()
    fetched = gang[0].get(gang[0].put(value), to="torch")
    assert fetched.dtype == torch.bfloat16
    assert torch.equal(fetched, value)


def test_collectives_reach_all_ranks_at_once_and_give_their_results(gang: Any) -> None:
    refs = gang.put([_floats(2, rank) for rank in range(4)])
    gang.barrier()
    for fetched in gang.get(gang.all_reduce(refs)):
        np.testing.assert_array_equal(fetched, [6, 10])
    for fetched in gang.get(gang.broadcast(refs, src_rank_in_group=2)):
        np.testing.assert_array_equal(fetched, [2, 3])
    for fetched in gang.get(gang.all_gather(refs)):
        np.testing.assert_array_equal(fetched, [0, 1, 1, 2, 2, 3, 3, 4])
    gathered = gang.gather(refs, dst_rank_in_group=1)
    assert [ref is None for ref in gathered] == [True, False, True, True]
    np.testing.assert_array_equal(gang.get(gathered[1]), [0, 1, 1, 2, 2, 3, 3, 4])


def test_a_call_of_the_gang_has_one_operation_id_and_another_the_next_time(
    gang: Any, sidecars: SidecarGang
) -> None:
    gang.barrier()
    gang.barrier()
    gang.barrier(operation_id="mine")
    ids = [
        [request.call.operation_id for request in sidecar.requests["Barrier"]]
        for sidecar in sidecars.sidecars
    ]
    assert ids[0] == ids[1] == ids[2] == ids[3]
    assert len(set(ids[0])) == 3
    assert len(ids[0][0]) == 32
    assert ids[0][2] == "mine"


def test_a_call_of_one_rank_has_no_operation_id_unless_given(gang: Any, sidecars: SidecarGang) -> None:
    pending = [rank.start("barrier", operation_id="x" if rank.rank == 1 else None) for rank in gang]
    assert [call.result() for call in pending] == [None] * 4
    assert [sidecar.requests["Barrier"][0].call.operation_id for sidecar in sidecars.sidecars] == [
        "",
        "x",
        "",
        "",
    ]


def test_options_travel_as_they_were_given(gang: Any, sidecars: SidecarGang) -> None:
    refs = gang.put_same(_floats(1))
    gang.all_reduce(refs, op="max", in_place=True, group="world", timeout=30.5, generation=7)
    request = sidecars[3].requests["AllReduce"][0]
    assert (request.call.group, request.call.timeout_ms, request.call.generation) == ("world", 30_500, 7)
    assert request.call.session_id == gang.session_id
    assert (request.ref_id, request.in_place, request.op) == (refs[3].id, True, 4)
    gang.gather(refs, dim=0)
    assert sidecars[0].requests["Gather"][0].dim == 0
    gang.barrier()
    assert sidecars[0].requests["Barrier"][0].call.timeout_ms == 20_000


@pytest.mark.parametrize("pick", [[0, 1, 2], [1, 0, 2, 3], [0, 0, 1, 2], []])
def test_refs_that_are_not_one_of_each_member_are_refused_before_anything_is_sent(
    gang: Any, sidecars: SidecarGang, pick: list[int]
) -> None:
    refs = gang.put_same(_floats(1))
    with pytest.raises(rankbridge.InvalidArgumentError, match="in group order") as caught:
        gang.all_reduce([refs[rank] for rank in pick])
    assert caught.value.got == f"ranks {pick}"
    assert not caught.value.indefinite
    assert "AllReduce" not in sidecars[0].requests


def test_a_ref_of_a_rank_beyond_the_gang_is_refused(gang: Any) -> None:
    ref = replace(gang[3].put(1.0), rank=4)
    with pytest.raises(rankbridge.RankOutOfRangeError):
        gang.get(ref)
    with pytest.raises(rankbridge.RankOutOfRangeError):
        gang[4]


def test_one_value_too_few_is_refused_before_anything_is_sent(gang: Any, sidecars: SidecarGang) -> None:
    with pytest.raises(rankbridge.InvalidArgumentError, match="one value for each rank"):
        gang.put([1.0, 2.0, 3.0])
    with pytest.raises(rankbridge.UnsupportedDtypeError):
        gang.put([1.0, 2.0, 3.0, "four"])
    assert all("PutTensor" not in sidecar.requests for sidecar in sidecars.sidecars)


def test_create_sends_one_description_to_all_or_one_to_each(gang: Any, sidecars: SidecarGang) -> None:
    gang.create("bfloat16", (2, 3))
    gang.create(np.float64, 5, init=[rankbridge.normal(seed, std=2) for seed in range(4)])
    first, second = sidecars[2].requests["CreateTensor"]
    assert first.WhichOneof("init") is None
    assert (list(first.tensor.shape), first.tensor.dtype) == ([2, 3], 4)
    assert (second.normal.seed, second.normal.std) == (2, 2.0)
    assert list(second.tensor.shape) == [5]
    with pytest.raises(rankbridge.InvalidArgumentError):
        gang.create("int8", (1,), init=[rankbridge.zeros()] * 3)


def test_describe_and_list_and_release_follow_the_refs(gang: Any, sidecars: SidecarGang) -> None:
    refs = gang.put_same(_floats(1))
    more = [gang[2].put(_floats(1)) for _ in range(4)]
    assert gang.describe(refs) == refs
    assert gang.describe(more[0]) == more[0]
    assert gang.list_refs() == [[refs[0]], [refs[1]], [refs[2], *more], [refs[3]]]
    assert gang[2].list_refs() == gang[2].list_refs(gang.session_id) == [refs[2], *more]
    assert gang[2].list_refs("") == []
    assert gang.release([*refs, *more]) == 8
    assert [len(sidecar.requests["ReleaseRefs"]) for sidecar in sidecars.sidecars] == [1, 1, 1, 1]
    assert gang.release([]) == 0
    assert gang.list_refs() == [[], [], [], []]


def test_a_gang_has_a_session_of_its_own_and_frees_it_at_its_end(gang: Any, sidecars: SidecarGang) -> None:
    gang.put_same(_floats(1))
    assert all(gang.session_id in sidecar.sessions for sidecar in sidecars.sidecars)
    assert gang.session_id
    gang.close()
    assert all(sidecar.sessions == {""} and not sidecar.held for sidecar in sidecars.sidecars)
    with pytest.raises(rankbridge.CallCancelledError, match="closed"):
        gang.barrier()


def test_sessions_nest_and_free_what_was_made_inside(gang: Any, sidecars: SidecarGang) -> None:
    outer = gang.put_same(_floats(1))
    with gang.session() as first:
        assert gang.session_id == first
        inside = gang.put_same(_floats(1))
        with gang.session() as second:
            assert gang[0].put(_floats(1)).session_id == second
        assert gang[0].put(_floats(1)).session_id == first
        assert {ref.session_id for ref in inside} == {first}
        assert {ref.session_id for ref in gang.all_reduce(outer)} == {outer[0].session_id}
    assert gang.session_id == outer[0].session_id
    assert {held.ref.session_id for held in sidecars[0].held.values()} == {outer[0].session_id}
    assert second not in sidecars[0].sessions


def test_groups_are_made_found_by_name_and_ended(gang: Any, sidecars: SidecarGang) -> None:
    group = gang.new_group("pair", [3, 1])
    assert (group.name, group.ranks, len(group)) == ("pair", (3, 1), 2)
    assert gang.groups() == [group, replace(group, name="world", ranks=(0, 1, 2, 3), generation=1)]
    by_name = gang.put([_floats(1, 3), _floats(1, 1)], group="pair")
    by_handle = gang.create("float32", (1,), group=group)
    assert [ref.rank for ref in by_name] == [ref.rank for ref in by_handle] == [3, 1]
    with pytest.raises(rankbridge.InvalidArgumentError):
        gang.all_reduce(by_name[::-1], group=group)
    assert gang.destroy_group("pair") == group
    assert "DestroyGroup" not in sidecars[0].requests
    with pytest.raises(rankbridge.UnknownGroupError):
        gang.barrier(group="pair")


def test_status_tells_what_every_rank_says(gang: Any) -> None:
    statuses = gang.status()
    assert [status.rank for status in statuses] == [0, 1, 2, 3]
    assert statuses[1].generation_state == "over"
    assert isinstance(statuses[1].generation_error, rankbridge.PeerLostError)
    assert gang[2].status().sessions == statuses[2].sessions
    assert [usage.session_id for usage in statuses[0].sessions] == ["", gang.session_id]


def _describes(sidecar: Sidecar, **fields: Any) -> None:
    def describe(request: Any, context: grpc.ServicerContext) -> Any:
        return rank_service_pb2.DescribeRankResponse(rank=sidecar.rank, **fields)

    sidecar.answers["DescribeRank"] = describe


def test_a_rank_tells_where_it_runs_and_no_tensor_is_made(gang: Any, sidecars: SidecarGang) -> None:
    world = group_service_pb2.Group(name="world", ranks=range(4), generation=1)
    for sidecar in sidecars.sidecars:
        world.rank_in_group = sidecar.rank
        _describes(
            sidecar,
            device=f"cuda:{sidecar.rank}",
            host="ab"[sidecar.rank // 2],
            local_rank=sidecar.rank % 2,
            fs_local_rank=sidecar.rank,
            local_world_size=2,
            groups=[world],
        )
    status = gang[3].status()
    assert (status.device, status.fs_local_rank, status.local_world_size) == ("cuda:3", 3, 2)
    assert (gang[3].default_device(), gang[3].fs_local_rank()) == ("cuda:3", 3)
    assert "CreateTensor" not in sidecars[3].requests
    members = gang.group("world").members
    assert [(it.local_rank, it.fs_local_rank) for it in members] == [(0, 0), (1, 1), (0, 2), (1, 3)]


def test_a_gang_is_distributed_when_all_ranks_are_in_one_generation(gang: Any, sidecars: SidecarGang) -> None:
    formed = rank_service_pb2.GENERATION_STATE_FORMED
    assert compat(gang, "olmo").is_distributed() is False, "their generation is over"
    for sidecar in sidecars.sidecars:
        _describes(sidecar, generation=2, generation_state=formed)
    assert compat(gang, "olmo").is_distributed() is True
    _describes(sidecars[2], generation=1, generation_state=formed)
    assert compat(gang, "olmo").is_distributed() is False
    _describes(sidecars[2], generation=2, generation_state=rank_service_pb2.GENERATION_STATE_PREPARED)
    assert compat(gang, "olmo").is_distributed() is False
    _describes(sidecars[2], generation=2, generation_state=formed)
    assert compat(gang, "olmo").is_distributed() is True
    sidecars.servers[2].stop(None).wait()
    assert compat(gang, "olmo").is_distributed() is False


def test_a_rank_tells_what_it_can_do_and_the_client_leaves_out_what_it_does_not_know(
    gang: Any, sidecars: SidecarGang
) -> None:
    assert gang[0].status().abilities is None
    newer = rank_service_pb2.Abilities(
        collectives=["all_reduce", "teleport", "barrier"],
        dtypes=[dtype_pb2.DTYPE_BOOL, 999],  # type: ignore[list-item]
        reductions=[
            rank_service_pb2.Reduction(
                op=collective_service_pb2.REDUCE_OP_BXOR, dtypes=[dtype_pb2.DTYPE_BOOL]
            ),
            rank_service_pb2.Reduction(op=999, dtypes=[dtype_pb2.DTYPE_BOOL]),  # type: ignore[arg-type]
        ],
    )
    sidecars[0].answers["DescribeRank"] = lambda *_: rank_service_pb2.DescribeRankResponse(abilities=newer)
    assert gang[0].status().abilities == rankbridge.Abilities(
        collectives=("barrier", "all_reduce"), dtypes=("bool",), reductions={"bxor": ("bool",)}
    )


def test_form_asks_one_rank_with_every_target_and_opens_the_session_again(
    gang: Any, sidecars: SidecarGang
) -> None:
    for sidecar in sidecars.sidecars:
        sidecar.sessions.clear()
    formed = gang.form(
        groups=[("tp", [1, 0]), rankbridge.Group(name="dp", ranks=(2, 3))], via_rank=1, timeout=30
    )
    assert formed == rankbridge.Formed(generation=2, world_size=4, took=0.0125)
    (request,) = sidecars[1].requests["Form"]
    assert list(request.endpoints) == sidecars.unix
    assert [(group.name, list(group.ranks)) for group in request.groups] == [("tp", [1, 0]), ("dp", [2, 3])]
    assert request.timeout_ms == 30_000
    assert all(gang.session_id in sidecar.sessions for sidecar in sidecars.sidecars)


def test_an_error_of_one_rank_is_raised_with_every_ranks_outcome(gang: Any, sidecars: SidecarGang) -> None:
    refs = gang.put_same(_floats(1))
    sidecars[2].answers["DescribeRef"] = lambda request, context: ref_pb.DescribeRefResponse(
        error=sidecars[2].error("UNKNOWN_REF", "no ref 'x' on this rank", operation="describe")
    )
    with pytest.raises(rankbridge.UnknownRefError) as caught:
        gang.describe(refs)
    error = caught.value
    assert isinstance(error, rankbridge.GangError)
    assert (error.code, error.rank, error.operation) == (ErrorCode.UNKNOWN_REF, 2, "describe")
    assert [outcome.rank for outcome in error.outcomes] == [0, 1, 2, 3]
    assert [outcome.value for outcome in error.outcomes] == [refs[0], refs[1], None, refs[3]]
    assert error.outcomes[2].error is error.cause
    assert error.indefinite, "three ranks have done it"
    assert "1 of 4 ranks failed: UNKNOWN_REF at rank 2" in str(error)


def test_an_error_of_a_fetch_is_raised_as_any_other(gang: Any) -> None:
    ref = replace(gang[1].put(1.0), id="other")
    with pytest.raises(rankbridge.UnknownRefError) as caught:
        gang[1].get(ref)
    assert (caught.value.rank, caught.value.operation, caught.value.indefinite) == (1, "get", False)
    assert not isinstance(caught.value, rankbridge.GangError)


def test_a_put_that_is_refused_early_raises_what_the_rank_says(gang: Any, sidecars: SidecarGang) -> None:
    sidecars[0].answers["PutTensor"] = lambda request, context: ref_pb.PutTensorResponse(
        error=sidecars[0].error("RESOURCE_EXHAUSTED", "rank 0: the tensor is over the limit")
    )
    with pytest.raises(rankbridge.ResourceExhaustedError, match="over the limit"):
        gang[0].put(np.zeros(16 << 20, np.uint8))


def test_unknown_operations_and_arguments_are_refused(gang: Any) -> None:
    with pytest.raises(rankbridge.InvalidArgumentError, match="no such operation"):
        gang[0].start("all_redcue")
    with pytest.raises(TypeError):
        gang[0].barrier(grop="world")
    with pytest.raises(rankbridge.InvalidArgumentError, match="reduce op"):
        gang.all_reduce(gang.put_same(1.0), op="mean")
    with pytest.raises(rankbridge.InvalidArgumentError, match="timeout"):
        gang.barrier(timeout=0)
    with pytest.raises(rankbridge.RankOutOfRangeError, match="src_rank_in_group"):
        gang.broadcast(gang.put_same(1.0), src_rank_in_group=-1)
    with pytest.raises(rankbridge.InvalidArgumentError, match="form"):
        gang.get(gang[0].put(1.0), to="list")
