"""The servicers of one rank, without sockets."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import grpc
import grpc_testing
import pytest
from tests.support.local_gang import LocalGang

from rankbridge.v1 import (
    call_pb2,
    collective_service_pb2,
    collective_service_pb2_grpc,
    dtype_pb2,
    error_pb2,
    gang_service_pb2,
    group_service_pb2,
    operation_service_pb2,
    rank_service_pb2,
    ref_service_pb2,
    tensor_pb2,
)
from rankbridge_server.backends.reductions import reduces
from rankbridge_server.core.coordinator import ReduceOp
from rankbridge_server.core.dtype import Dtype
from rankbridge_server.core.limits import Limits
from rankbridge_server.core.refs.refs import MAX_ID_BYTES, Ref
from rankbridge_server.core.refs.tensors import MAX_DIMENSIONS, TensorSpec
from rankbridge_server.service.gang import GangServicer
from rankbridge_server.service.group import GroupServicer
from rankbridge_server.service.operations.derived import COLLECTIVES
from rankbridge_server.service.operations.typed import servicer
from rankbridge_server.service.rank import RankServicer
from rankbridge_server.service.refs.service import MAX_PAGE, RefServicer
from rankbridge_server.service.wire import wire

FLOAT = tensor_pb2.TensorSpec(dtype=dtype_pb2.DTYPE_FLOAT32, shape=[2])
FILES = [
    collective_service_pb2,
    gang_service_pb2,
    group_service_pb2,
    rank_service_pb2,
    ref_service_pb2,
]
SERVICES = {name: service for file in FILES for name, service in file.DESCRIPTOR.services_by_name.items()}


class Sidecar:
    """The services of the only rank of a gang, called through grpc-testing."""

    def __init__(self) -> None:
        self.rank = LocalGang(1, Limits(max_bytes=1024)).ranks[0]
        servicers = {
            "CollectiveService": servicer(
                self.rank, collective_service_pb2_grpc.CollectiveServiceServicer, COLLECTIVES
            ),
            "GangService": GangServicer(self.rank),
            "GroupService": GroupServicer(self.rank),
            "RankService": RankServicer(self.rank, ["unix:/nowhere"]),
            "RefService": RefServicer(self.rank),
        }
        self._server = grpc_testing.server_from_dictionary(
            {SERVICES[name]: servicer for name, servicer in servicers.items()},
            grpc_testing.strict_real_time(),
        )

    def unary(self, service: str, method: str, request: Any) -> Any:
        rpc = self._server.invoke_unary_unary(SERVICES[service].methods_by_name[method], (), request, None)
        response, _, code, details = rpc.termination()
        assert code is grpc.StatusCode.OK, details
        return response

    def put(self, parts: Sequence[ref_service_pb2.PutTensorRequest]) -> ref_service_pb2.PutTensorResponse:
        rpc = self._server.invoke_stream_unary(SERVICES["RefService"].methods_by_name["PutTensor"], (), None)
        for part in parts:
            rpc.send_request(part)
        rpc.requests_closed()
        response, _, code, details = rpc.termination()
        assert code is grpc.StatusCode.OK, details
        assert isinstance(response, ref_service_pb2.PutTensorResponse)
        return response

    def get(self, ref_id: str) -> list[Any]:
        rpc = self._server.invoke_unary_stream(
            SERVICES["RefService"].methods_by_name["GetTensor"],
            (),
            ref_service_pb2.GetTensorRequest(ref_id=ref_id),
            None,
        )
        _, code, details = rpc.termination()
        assert code is grpc.StatusCode.OK, details
        return _all(rpc)

    def create(self, **init: Any) -> str:
        request = ref_service_pb2.CreateTensorRequest(tensor=FLOAT, **init)
        return str(self.unary("RefService", "CreateTensor", request).ref.id)


def _all(rpc: Any) -> list[Any]:
    responses: list[Any] = []
    while True:
        try:
            responses.append(rpc.take_response())
        except (ValueError, IndexError):
            return responses


@pytest.fixture
def sidecar() -> Sidecar:
    return Sidecar()


def code(response: Any) -> str:
    assert response.HasField("error"), response
    return error_pb2.ErrorCode.Name(response.error.code).removeprefix("ERROR_CODE_")


def test_a_tensor_put_in_chunks_is_fetched_again(sidecar: Sidecar) -> None:
    data = bytes(range(8))
    parts = [
        ref_service_pb2.PutTensorRequest(header=ref_service_pb2.PutTensorHeader(tensor=FLOAT)),
        ref_service_pb2.PutTensorRequest(chunk=data[:3]),
        ref_service_pb2.PutTensorRequest(chunk=b""),
        ref_service_pb2.PutTensorRequest(chunk=data[3:]),
    ]
    ref = sidecar.put(parts).ref
    spec, *chunks = sidecar.get(ref.id)
    assert (spec.tensor.dtype, list(spec.tensor.shape), spec.tensor.device) == (FLOAT.dtype, [2], "cpu")
    assert b"".join(ref_service_pb2.GetTensorResponse.FromString(it).chunk for it in chunks) == data


HEADER = ref_service_pb2.PutTensorRequest(header=ref_service_pb2.PutTensorHeader(tensor=FLOAT))


@pytest.mark.parametrize(
    "parts",
    [
        [],
        [ref_service_pb2.PutTensorRequest(chunk=bytes(8))],
        [HEADER],
        [HEADER, ref_service_pb2.PutTensorRequest(chunk=bytes(7))],
        [HEADER, ref_service_pb2.PutTensorRequest(chunk=bytes(9))],
        [HEADER, HEADER],
    ],
    ids=["nothing", "no header", "no chunk", "too short", "too long", "two headers"],
)
def test_a_put_that_is_not_whole_is_refused_and_keeps_nothing(sidecar: Sidecar, parts: list[Any]) -> None:
    assert code(sidecar.put(parts)) == "INVALID_ARGUMENT"
    assert [(usage.refs, usage.bytes) for usage in sidecar.rank.refs.usage()] == [(0, 0)]


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        (tensor_pb2.TensorSpec(shape=[2]), "INVALID_ARGUMENT"),
        (tensor_pb2.TensorSpec(dtype=99, shape=[2]), "INVALID_ARGUMENT"),  # type: ignore[arg-type]
        (tensor_pb2.TensorSpec(dtype=dtype_pb2.DTYPE_INT8, shape=[-1]), "INVALID_ARGUMENT"),
        (tensor_pb2.TensorSpec(dtype=dtype_pb2.DTYPE_INT8, shape=[1] * 65), "INVALID_ARGUMENT"),
        (tensor_pb2.TensorSpec(dtype=dtype_pb2.DTYPE_INT8, shape=[1], device="cuda:7"), "INVALID_ARGUMENT"),
        (tensor_pb2.TensorSpec(dtype=dtype_pb2.DTYPE_INT8, shape=[1025]), "RESOURCE_EXHAUSTED"),
        (tensor_pb2.TensorSpec(dtype=dtype_pb2.DTYPE_INT8, shape=[2**62, 2**62]), "RESOURCE_EXHAUSTED"),
        (tensor_pb2.TensorSpec(dtype=dtype_pb2.DTYPE_INT8, shape=[0, 2**62, 2**62]), "INVALID_ARGUMENT"),
    ],
)
def test_a_tensor_that_cannot_be_is_refused(
    sidecar: Sidecar, spec: tensor_pb2.TensorSpec, expected: str
) -> None:
    request = ref_service_pb2.CreateTensorRequest(tensor=spec)
    assert code(sidecar.unary("RefService", "CreateTensor", request)) == expected
    header = ref_service_pb2.PutTensorRequest(header=ref_service_pb2.PutTensorHeader(tensor=spec))
    assert code(sidecar.put([header])) == expected
    assert [(usage.refs, usage.bytes) for usage in sidecar.rank.refs.usage()] == [(0, 0)]


def test_a_page_of_the_longest_refs_is_below_what_grpc_takes_unless_told_otherwise() -> None:
    spec = TensorSpec(Dtype.FLOAT8_E4M3FNUZ, (2**58,) * MAX_DIMENSIONS, "cuda:1023")
    ref = wire.pack_ref(Ref(f"{2**31 - 1}.{'f' * 8}.{2**63}", 2**31 - 1, "s" * MAX_ID_BYTES, spec))
    page = ref_service_pb2.RefPage(refs=[ref] * MAX_PAGE, next_page_token=ref.id)
    assert ref_service_pb2.ListRefsResponse(page=page).ByteSize() < 4 << 20


def test_full_without_an_element_is_refused(sidecar: Sidecar) -> None:
    request = ref_service_pb2.CreateTensorRequest(tensor=FLOAT, full=ref_service_pb2.Full())
    assert code(sidecar.unary("RefService", "CreateTensor", request)) == "INVALID_ARGUMENT"


def test_a_fetch_of_an_unknown_ref_is_one_error(sidecar: Sidecar) -> None:
    (response,) = sidecar.get("nonsense")
    assert code(response) == "UNKNOWN_REF"
    assert "get" in response.error.message


def test_refs_are_listed_page_by_page(sidecar: Sidecar) -> None:
    ids = [sidecar.create() for _ in range(5)]
    listed: list[str] = []
    request = ref_service_pb2.ListRefsRequest(page_size=2)
    while True:
        page = sidecar.unary("RefService", "ListRefs", request).page
        assert len(page.refs) <= 2
        listed += [ref.id for ref in page.refs]
        if not page.next_page_token:
            break
        request.page_token = page.next_page_token
    assert listed == ids


def test_a_page_that_is_too_large_is_refused(sidecar: Sidecar) -> None:
    request = ref_service_pb2.ListRefsRequest(page_size=1001)
    assert code(sidecar.unary("RefService", "ListRefs", request)) == "INVALID_ARGUMENT"


def test_sessions_are_opened_closed_and_keep_their_refs_apart(sidecar: Sidecar) -> None:
    open_it = ref_service_pb2.OpenSessionRequest(session_id="s")
    assert sidecar.unary("RefService", "OpenSession", open_it).session_id == "s"
    ref_id = sidecar.create(session_id="s")
    describe = ref_service_pb2.DescribeRefRequest(ref_id=ref_id)
    assert code(sidecar.unary("RefService", "DescribeRef", describe)) == "WRONG_SESSION"
    release = ref_service_pb2.ReleaseRefsRequest(ref_ids=[ref_id])
    assert code(sidecar.unary("RefService", "ReleaseRefs", release)) == "WRONG_SESSION"
    close = ref_service_pb2.CloseSessionRequest(session_id="s")
    assert sidecar.unary("RefService", "CloseSession", close).released == 1
    assert code(sidecar.unary("RefService", "CloseSession", close)) == "UNKNOWN_SESSION"


def test_a_collective_of_one_rank_gives_a_ref(sidecar: Sidecar) -> None:
    ref_id = sidecar.create(full=ref_service_pb2.Full(float=2.5))
    request = collective_service_pb2.AllReduceRequest(ref_id=ref_id)
    ref = sidecar.unary("CollectiveService", "AllReduce", request).value.ref
    _, chunk = sidecar.get(ref.id)
    assert (
        memoryview(ref_service_pb2.GetTensorResponse.FromString(chunk).chunk).cast("f").tolist() == [2.5] * 2
    )


def test_barrier_gives_none(sidecar: Sidecar) -> None:
    response = sidecar.unary("CollectiveService", "Barrier", collective_service_pb2.BarrierRequest())
    assert response.value.WhichOneof("kind") == "none"


@pytest.mark.parametrize(
    ("request_", "expected"),
    [
        (collective_service_pb2.AllReduceRequest(), "INVALID_ARGUMENT"),
        (collective_service_pb2.AllReduceRequest(ref_id="x", op=77), "INVALID_ARGUMENT"),  # type: ignore[arg-type]
        (
            collective_service_pb2.AllReduceRequest(call=call_pb2.Call(timeout_ms=2**32 - 1)),
            "INVALID_ARGUMENT",
        ),
        (collective_service_pb2.AllReduceRequest(call=call_pb2.Call(group="g")), "UNKNOWN_GROUP"),
    ],
    ids=["no ref", "no such op", "timeout of weeks", "no such group"],
)
def test_a_bad_collective_is_refused_with_its_place(sidecar: Sidecar, request_: Any, expected: str) -> None:
    response = sidecar.unary("CollectiveService", "AllReduce", request_)
    assert code(response) == expected
    assert response.error.operation == "all_reduce"
    assert not response.error.indefinite


def test_groups_are_made_described_listed_and_destroyed(sidecar: Sidecar) -> None:
    made = sidecar.unary("GroupService", "NewGroup", group_service_pb2.NewGroupRequest(name="g", ranks=[0]))
    assert (made.group.name, made.group.rank_in_group, made.group.backend) == ("g", 0, "fake")
    described = sidecar.unary(
        "GroupService", "DescribeGroup", group_service_pb2.DescribeGroupRequest(name="g")
    )
    assert described == group_service_pb2.DescribeGroupResponse(group=made.group)
    listed = sidecar.unary("GroupService", "ListGroups", group_service_pb2.ListGroupsRequest())
    assert [group.name for group in listed.groups] == ["g", "world"]
    destroy = group_service_pb2.DestroyGroupRequest(call=call_pb2.Call(group="g"))
    assert sidecar.unary("GroupService", "DestroyGroup", destroy).group.name == "g"
    gone = sidecar.unary("GroupService", "DescribeGroup", group_service_pb2.DescribeGroupRequest(name="g"))
    assert code(gone) == "UNKNOWN_GROUP"


def test_a_rank_describes_itself(sidecar: Sidecar) -> None:
    sidecar.create()
    it = sidecar.unary("RankService", "DescribeRank", rank_service_pb2.DescribeRankRequest())
    assert (it.rank, it.world_size, it.generation, list(it.endpoints)) == (0, 1, 1, ["unix:/nowhere"])
    assert it.generation_state == rank_service_pb2.GENERATION_STATE_FORMED
    assert [(usage.session_id, usage.refs, usage.bytes) for usage in it.sessions] == [("", 1, 8)]


def test_a_rank_tells_what_its_backend_can_do(sidecar: Sidecar) -> None:
    it = sidecar.unary("RankService", "DescribeRank", rank_service_pb2.DescribeRankRequest()).abilities
    assert sorted(it.collectives) == sorted(operation_service_pb2.Operation.DESCRIPTOR.fields_by_name)
    assert sorted(it.dtypes) == sorted(set(dtype_pb2.Dtype.values()) - {dtype_pb2.DTYPE_UNSPECIFIED})
    codes = {
        collective_service_pb2.ReduceOp.Name(each.op): {dtype_pb2.Dtype.Name(dtype) for dtype in each.dtypes}
        for each in it.reductions
    }
    assert codes == {
        f"REDUCE_OP_{op.name}": {f"DTYPE_{dtype.name}" for dtype in Dtype if reduces(op, dtype)}
        for op in ReduceOp
    }


def test_an_aborted_generation_says_why(sidecar: Sidecar) -> None:
    abort = rank_service_pb2.AbortGenerationRequest(generation=1, reason="maintenance")
    assert sidecar.unary("RankService", "AbortGeneration", abort).aborted
    it = sidecar.unary("RankService", "DescribeRank", rank_service_pb2.DescribeRankRequest())
    assert it.generation_state == rank_service_pb2.GENERATION_STATE_OVER
    assert "maintenance" in it.generation_error.message


@pytest.mark.parametrize("endpoints", [[], ["unix:/a", "unix:/a"]])
def test_a_gang_needs_an_endpoint_for_each_rank(sidecar: Sidecar, endpoints: list[str]) -> None:
    response = sidecar.unary("GangService", "Form", gang_service_pb2.FormRequest(endpoints=endpoints))
    assert code(response) == "INVALID_ARGUMENT"


@pytest.mark.parametrize(
    "request_",
    [
        rank_service_pb2.PrepareGenerationRequest(generation=1, rank=0, world_size=1),
        rank_service_pb2.PrepareGenerationRequest(generation=2, rank=1, world_size=1),
        rank_service_pb2.PrepareGenerationRequest(
            generation=2, world_size=1, groups=[rank_service_pb2.GroupDescription(name="world", ranks=[0])]
        ),
        rank_service_pb2.PrepareGenerationRequest(
            generation=2, world_size=1, groups=[rank_service_pb2.GroupDescription(name="g", ranks=[1])]
        ),
    ],
    ids=["old number", "rank out of range", "second world", "group out of range"],
)
def test_a_generation_that_cannot_be_leaves_the_running_one(sidecar: Sidecar, request_: Any) -> None:
    assert sidecar.unary("RankService", "PrepareGeneration", request_).HasField("error")
    barrier = sidecar.unary("CollectiveService", "Barrier", collective_service_pb2.BarrierRequest())
    assert barrier.HasField("value")
