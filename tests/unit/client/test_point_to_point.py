"""How sends and receives are asked for, and how their answers are read."""

from __future__ import annotations

from typing import Any

import grpc
import numpy as np
import pytest
from tests.unit.client.declared import SCOPE, answer, asked, calls_of, ref, refs
from tests.unit.client.sidecars import SidecarGang

import rankbridge
from rankbridge import InvalidArgumentError, ProtocolError, RankOutOfRangeError, from_value
from rankbridge._plan import operations as ops
from rankbridge.v1 import dtype_pb2, operation_service_pb2, point_to_point_service_pb2 as pb


def test_a_send_names_the_ref_its_session_the_receiver_and_the_tag() -> None:
    call = ops.OPERATIONS["send"](SCOPE, ref(), dst_rank_in_group=1, tag=2**32 - 1, group="tp", timeout=1.5)
    request = asked(call, pb.SendRequest)
    assert (request.ref_id, request.dst_rank_in_group, request.tag) == ("2.0", 1, 2**32 - 1)
    assert (request.call.session_id, request.call.group, request.call.timeout_ms) == ("theirs", "tp", 1500)
    assert (call.kind, call.path) == ("send", "/rankbridge.v1.OperationService/Run")
    assert answer(call, pb.SendResponse, None) is None


def test_a_receive_is_from_anybody_unless_told() -> None:
    anybody = asked(ops.OPERATIONS["recv"](SCOPE), pb.RecvRequest)
    assert not anybody.HasField("src_rank_in_group")
    assert anybody.WhichOneof("expected") is None
    first = asked(ops.OPERATIONS["recv"](SCOPE, src_rank_in_group=0), pb.RecvRequest)
    assert first.HasField("src_rank_in_group")
    assert first.src_rank_in_group == 0
    for receive, kind in (
        (ops.OPERATIONS["recv_object"], pb.RecvObjectRequest),
        (ops.OPERATIONS["recv_tensor_dict"], pb.RecvTensorDictRequest),
    ):
        assert not asked(receive(SCOPE, tag=3), kind).HasField("src_rank_in_group")
        assert asked(receive(SCOPE, src_rank_in_group=0), kind).HasField("src_rank_in_group")
        assert asked(receive(SCOPE, tag=3), kind).tag == 3


def test_a_receive_tells_what_it_expects() -> None:
    into = asked(ops.OPERATIONS["recv"](SCOPE, expected=ref()), pb.RecvRequest)
    assert (into.WhichOneof("expected"), into.ref_id, into.call.session_id) == ("ref_id", "2.0", "theirs")
    spec = asked(ops.OPERATIONS["recv"](SCOPE, expected=(np.int8, (3, 0))), pb.RecvRequest)
    assert (spec.tensor.dtype, list(spec.tensor.shape)) == (dtype_pb2.DTYPE_INT8, [3, 0])
    assert spec.call.session_id == "mine"
    assert list(asked(ops.OPERATIONS["recv"](SCOPE, expected=("bool", 4)), pb.RecvRequest).tensor.shape) == [
        4
    ]
    for wrong in ("int8", ("int8",), ["int8", (1,)]):
        with pytest.raises(InvalidArgumentError, match="not what a receive can expect"):
            ops.OPERATIONS["recv"](SCOPE, expected=wrong)


def test_objects_and_tensor_dicts_are_sent_as_values() -> None:
    sent = asked(
        ops.OPERATIONS["send_object"](SCOPE, {"a": ref(3)}, dst_rank_in_group=0), pb.SendObjectRequest
    )
    assert from_value(sent.value) == {"a": ref(3)}
    assert sent.call.session_id == "mine", "the ref in an object is but a handle"
    tensors = {"a": ref(), "in": {"b": ref(number=1)}}
    sent = asked(
        ops.OPERATIONS["send_tensor_dict"](SCOPE, tensors, dst_rank_in_group=0), pb.SendTensorDictRequest
    )
    assert from_value(sent.dict) == tensors
    assert sent.call.session_id == "theirs"
    with pytest.raises(InvalidArgumentError, match="takes a map"):
        ops.OPERATIONS["send_tensor_dict"](SCOPE, [ref()], dst_rank_in_group=0)
    with pytest.raises(InvalidArgumentError, match="one rank and one session"):
        ops.OPERATIONS["send_tensor_dict"](SCOPE, {"a": ref(1), "b": ref(2)}, dst_rank_in_group=0)


def test_what_comes_is_given_with_the_rank_in_group_that_it_came_from() -> None:
    assert answer(ops.OPERATIONS["recv"](SCOPE), pb.RecvResponse, (ref(), 3)) == (ref(), 3)
    assert answer(ops.OPERATIONS["recv_object"](SCOPE), pb.RecvObjectResponse, (None, 0)) == (None, 0)
    tensors = {"a": ref()}
    assert answer(ops.OPERATIONS["recv_tensor_dict"](SCOPE), pb.RecvTensorDictResponse, (tensors, 1)) == (
        tensors,
        1,
    )
    for wrong in (ref(), (ref(),), (ref(), True), [ref(), 1]):
        with pytest.raises(ProtocolError, match="from where"):
            answer(ops.OPERATIONS["recv"](SCOPE), pb.RecvResponse, wrong)


@pytest.mark.parametrize("rank", [-1, 2**32])
def test_ranks_that_can_be_none_are_refused(rank: int) -> None:
    with pytest.raises(RankOutOfRangeError, match="dst_rank_in_group"):
        ops.OPERATIONS["send"](SCOPE, ref(), dst_rank_in_group=rank)
    with pytest.raises(RankOutOfRangeError, match="src_rank_in_group"):
        ops.OPERATIONS["recv"](SCOPE, src_rank_in_group=rank)


@pytest.mark.parametrize("tag", [-1, 2**32])
def test_tags_that_do_not_fit_are_refused(tag: int) -> None:
    with pytest.raises(InvalidArgumentError, match="not a tag"):
        ops.OPERATIONS["send_object"](SCOPE, 1, dst_rank_in_group=0, tag=tag)
    with pytest.raises(InvalidArgumentError, match="not a tag"):
        ops.OPERATIONS["recv_object"](SCOPE, tag=tag)


@pytest.mark.parametrize(
    "operation", ["send", "recv", "send_object", "recv_object", "send_tensor_dict", "recv_tensor_dict"]
)
def test_a_gang_as_a_whole_neither_sends_nor_receives(gang: Any, operation: str) -> None:
    with pytest.raises(InvalidArgumentError, match="operation of one rank"):
        calls_of(operation, refs())
    with pytest.raises(InvalidArgumentError, match="operation of one rank"):
        gang.submit(operation, refs())


def test_what_is_begun_is_the_same_request_under_its_kind() -> None:
    call = ops.submit(SCOPE, "recv", src_rank_in_group=0, tag=4, operation_id="id")
    request = asked(call, operation_service_pb2.SubmitRequest)
    assert request.operation.WhichOneof("kind") == "recv"
    assert (request.operation.recv.tag, request.operation.recv.HasField("src_rank_in_group")) == (4, True)
    assert request.operation.recv.call.operation_id == call.operation_id == "id"


def test_what_may_have_been_begun_without_an_answer_is_withdrawn(gang: Any, sidecars: SidecarGang) -> None:
    sidecars[1].answers["Submit"] = lambda _, context: context.abort(
        grpc.StatusCode.DATA_LOSS, "half an answer"
    )
    with pytest.raises(rankbridge.TransportError) as caught:
        gang[1].irecv_object()
    assert caught.value.indefinite
    (begun,) = sidecars[1].requests["Submit"]
    (withdrawn,) = sidecars[1].requests["Cancel"]
    assert withdrawn.operation_id == begun.operation.recv_object.call.operation_id != ""


def test_what_was_refused_is_not_withdrawn(gang: Any, sidecars: SidecarGang) -> None:
    refused = sidecars[1].error("RANK_OUT_OF_RANGE", "no such member")
    sidecars[1].answers["Submit"] = lambda *_: operation_service_pb2.SubmitResponse(error=refused)
    with pytest.raises(RankOutOfRangeError):
        gang[1].isend_object(1, dst_rank_in_group=9)
    assert "Cancel" not in sidecars[1].requests


def test_each_work_has_an_id_of_its_own(gang: Any, sidecars: SidecarGang) -> None:
    begun = [
        gang[0].isend_object(1, dst_rank_in_group=1),
        gang[0].irecv(),
        gang[0].irecv(operation_id="mine"),
    ]
    ids = [work.operation_id for work in begun]
    assert len({*ids, ""}) == 4
    assert ids[2] == "mine"
    kinds = [request.operation.WhichOneof("kind") for request in sidecars[0].requests["Submit"]]
    assert kinds == ["send_object", "recv", "recv"]
