"""Operations of ObjectService."""

from __future__ import annotations

from typing import Any

from rankbridge.v1 import object_service_pb2 as pb

from ...core.operations import table as core
from ..wire import values, wire
from .wire_operation import WireOperation


def _broadcast(request: pb.BroadcastObjectRequest) -> core.BroadcastObject:
    data = values.packed(request.value) if request.HasField("value") else None
    return core.BroadcastObject(data, request.src_rank_in_group)


def _scatter(request: pb.ScatterObjectRequest) -> core.ScatterObject:
    data = values.packed_items("values", request.values) if values.is_given(request.values) else None
    return core.ScatterObject(data, request.src_rank_in_group)


def _broadcast_dict(request: pb.BroadcastTensorDictRequest) -> core.BroadcastTensorDict:
    given = values.given_dict(request.dict) if values.is_given(request.dict) else None
    return core.BroadcastTensorDict(given, request.src_rank_in_group)


OBJECTS: dict[str, WireOperation[Any, Any]] = {
    "broadcast_object": WireOperation(core.BROADCAST_OBJECT, _broadcast),
    "scatter_object": WireOperation(core.SCATTER_OBJECT, _scatter),
    "gather_object": WireOperation(
        core.GATHER_OBJECT, lambda r: core.GatherObject(values.packed(r.value), r.dst_rank_in_group)
    ),
    "all_gather_object": WireOperation(
        core.ALL_GATHER_OBJECT, lambda r: core.AllGatherObject(values.packed(r.value))
    ),
    "all_reduce_value": WireOperation(
        core.ALL_REDUCE_VALUE, lambda r: core.AllReduceValue(values.number(r.value), wire.reduce_op(r.op))
    ),
    "broadcast_tensor_dict": WireOperation(core.BROADCAST_TENSOR_DICT, _broadcast_dict),
}
"""By their field in the `Operation` message."""
