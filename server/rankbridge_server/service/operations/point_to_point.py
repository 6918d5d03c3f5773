"""Operations of PointToPointService."""

from __future__ import annotations

from typing import Any

from rankbridge.v1 import point_to_point_service_pb2 as pb

from ...core.operations import table as core
from ..wire import values, wire
from .wire_operation import WireOperation

Receive = pb.RecvRequest | pb.RecvObjectRequest | pb.RecvTensorDictRequest


def _src(request: Receive) -> int | None:
    return request.src_rank_in_group if request.HasField("src_rank_in_group") else None


def _recv(request: pb.RecvRequest) -> core.Recv:
    expected = wire.tensor_spec(request.tensor, "") if request.HasField("tensor") else None
    return core.Recv(_src(request), request.tag, request.ref_id, expected)


POINT_TO_POINT: dict[str, WireOperation[Any, Any]] = {
    "send": WireOperation(core.SEND, lambda r: core.Send(r.ref_id, r.dst_rank_in_group, r.tag)),
    "recv": WireOperation(core.RECV, _recv),
    "send_object": WireOperation(
        core.SEND_OBJECT, lambda r: core.SendObject(values.packed(r.value), r.dst_rank_in_group, r.tag)
    ),
    "recv_object": WireOperation(core.RECV_OBJECT, lambda r: core.RecvObject(_src(r), r.tag)),
    "send_tensor_dict": WireOperation(
        core.SEND_TENSOR_DICT,
        lambda r: core.SendTensorDict(values.given_dict(r.dict), r.dst_rank_in_group, r.tag),
    ),
    "recv_tensor_dict": WireOperation(core.RECV_TENSOR_DICT, lambda r: core.RecvTensorDict(_src(r), r.tag)),
}
"""By their field in the `Operation` message."""
