"""The wire's side of every operation: one line each, from request message to the core's declaration."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

from rankbridge.v1 import call_pb2
from rankbridge.v1 import collective_service_pb2 as collective
from rankbridge.v1 import group_service_pb2 as group

from ..core import operations as core
from . import wire

LAST = -1


class Request(Protocol):
    """What every request of an operation has."""

    @property
    def call(self) -> call_pb2.Call:
        """Group, identity, timeout."""
        ...


R = TypeVar("R", bound=Request)
Args = TypeVar("Args")


@dataclass(frozen=True, slots=True)
class WireOperation(Generic[R, Args]):
    """An operation as it comes over the wire: the core's declaration, and how to read its arguments."""

    core: core.Operation[Args]
    args: Callable[[R], Args]


def _dim(
    request: collective.GatherRequest | collective.AllGatherRequest | collective.ReduceScatterRequest,
) -> int:
    return request.dim if request.HasField("dim") else LAST


BARRIER: WireOperation[collective.BarrierRequest, core.Barrier] = WireOperation(
    core.BARRIER, lambda _: core.Barrier()
)
BROADCAST: WireOperation[collective.BroadcastRequest, core.Broadcast] = WireOperation(
    core.BROADCAST, lambda r: core.Broadcast(r.ref_id, r.src_rank_in_group, r.in_place)
)
SCATTER: WireOperation[collective.ScatterRequest, core.Scatter] = WireOperation(
    core.SCATTER, lambda r: core.Scatter(r.ref_id, r.src_rank_in_group, r.dim)
)
GATHER: WireOperation[collective.GatherRequest, core.Gather] = WireOperation(
    core.GATHER, lambda r: core.Gather(r.ref_id, r.dst_rank_in_group, _dim(r), tuple(r.sizes))
)
REDUCE: WireOperation[collective.ReduceRequest, core.Reduce] = WireOperation(
    core.REDUCE, lambda r: core.Reduce(r.ref_id, wire.reduce_op(r.op), r.dst_rank_in_group)
)
ALL_REDUCE: WireOperation[collective.AllReduceRequest, core.AllReduce] = WireOperation(
    core.ALL_REDUCE, lambda r: core.AllReduce(r.ref_id, wire.reduce_op(r.op), r.in_place)
)
REDUCE_SCATTER: WireOperation[collective.ReduceScatterRequest, core.ReduceScatter] = WireOperation(
    core.REDUCE_SCATTER,
    lambda r: core.ReduceScatter(r.ref_id, wire.reduce_op(r.op), _dim(r), tuple(r.sizes)),
)
ALL_TO_ALL: WireOperation[collective.AllToAllRequest, core.AllToAll] = WireOperation(
    core.ALL_TO_ALL,
    lambda r: core.AllToAll(r.ref_id, r.dim, tuple(r.input_sizes), tuple(r.output_sizes)),
)
ALL_GATHER: WireOperation[collective.AllGatherRequest, core.AllGather] = WireOperation(
    core.ALL_GATHER, lambda r: core.AllGather(r.ref_id, _dim(r), tuple(r.sizes))
)
NEW_GROUP: WireOperation[group.NewGroupRequest, core.NewGroup] = WireOperation(
    core.NEW_GROUP, lambda r: core.NewGroup(r.name, tuple(r.ranks))
)
DESTROY_GROUP: WireOperation[group.DestroyGroupRequest, core.DestroyGroup] = WireOperation(
    core.DESTROY_GROUP, lambda _: core.DestroyGroup()
)

COLLECTIVES: dict[str, WireOperation[Any, Any]] = {
    "barrier": BARRIER,
    "broadcast": BROADCAST,
    "gather": GATHER,
    "all_reduce": ALL_REDUCE,
    "all_gather": ALL_GATHER,
    "reduce": REDUCE,
    "scatter": SCATTER,
    "reduce_scatter": REDUCE_SCATTER,
    "all_to_all": ALL_TO_ALL,
}
"""Operations of CollectiveService, by their field in the `Operation` message."""


def rpc_name(kind: str) -> str:
    """The RPC of a collective: "AllReduce" for "all_reduce"."""
    return "".join(part.capitalize() for part in kind.split("_"))
