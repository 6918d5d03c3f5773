"""Operations of CollectiveService."""

from __future__ import annotations

from typing import Any

from rankbridge.v1 import collective_service_pb2 as pb

from ...core.operations import table as core
from ..wire import wire
from .wire_operation import WireOperation

COLLECTIVES: dict[str, WireOperation[Any, Any]] = {
    "barrier": WireOperation(core.BARRIER, lambda _: core.Barrier()),
    "broadcast": WireOperation(
        core.BROADCAST, lambda r: core.Broadcast(r.ref_id, r.src_rank_in_group, r.in_place)
    ),
    "scatter": WireOperation(core.SCATTER, lambda r: core.Scatter(r.ref_id, r.src_rank_in_group, r.dim)),
    "gather": WireOperation(
        core.GATHER,
        lambda r: core.Gather(r.ref_id, r.dst_rank_in_group, _dim(r), tuple(r.sizes), _layout(r), r.ragged),
    ),
    "all_gather": WireOperation(
        core.ALL_GATHER,
        lambda r: core.AllGather(r.ref_id, _dim(r), tuple(r.sizes), _layout(r), r.ragged),
    ),
    "reduce": WireOperation(
        core.REDUCE, lambda r: core.Reduce(r.ref_id, wire.reduce_op(r.op), r.dst_rank_in_group)
    ),
    "all_reduce": WireOperation(
        core.ALL_REDUCE, lambda r: core.AllReduce(r.ref_id, wire.reduce_op(r.op), r.in_place)
    ),
    "reduce_scatter": WireOperation(
        core.REDUCE_SCATTER,
        lambda r: core.ReduceScatter(
            r.ref_id, wire.reduce_op(r.op), r.dim if r.HasField("dim") else LAST, tuple(r.sizes)
        ),
    ),
    "all_to_all": WireOperation(
        core.ALL_TO_ALL,
        lambda r: core.AllToAll(r.ref_id, r.dim, tuple(r.input_sizes), tuple(r.output_sizes)),
    ),
    "scan": WireOperation(core.SCAN, lambda r: core.Scan(r.ref_id, wire.reduce_op(r.op), r.exclusive)),
}
"""By their field in the `Operation` message."""

LAST = -1


def _dim(request: pb.GatherRequest | pb.AllGatherRequest) -> int | None:
    return request.dim if request.HasField("dim") else None


def _layout(request: pb.GatherRequest | pb.AllGatherRequest) -> core.GatherLayout:
    return wire.gather_layout(request.layout)
