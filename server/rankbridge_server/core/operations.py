"""Every operation, declared once: its name, its arguments, what is checked, agreed on, and run.

To add one: write its arguments and a function from site and arguments to a plan, and declare it below.
The wire's side of it is one line in `service/operations.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

from .coordinator import ReduceOp
from .errors import BridgeError, ErrorCode
from .group_operations import DestroyGroup, NewGroup, plan_destroy_group, plan_new_group
from .operation import Plan, Site, TensorPlan

__all__ = [
    "ALL_GATHER",
    "ALL_REDUCE",
    "BARRIER",
    "BROADCAST",
    "DESTROY_GROUP",
    "GATHER",
    "NEW_GROUP",
    "AllGather",
    "AllReduce",
    "Barrier",
    "Broadcast",
    "DestroyGroup",
    "Gather",
    "NewGroup",
    "Operation",
]

Args = TypeVar("Args")


@dataclass(frozen=True, slots=True)
class Operation(Generic[Args]):
    """One operation. `plan` raises BridgeError when the arguments are wrong; then nothing has happened."""

    name: str
    plan: Callable[[Site, Args], Plan]


@dataclass(frozen=True, slots=True)
class Barrier:
    """Wait for all members."""


@dataclass(frozen=True, slots=True)
class Broadcast:
    """Give every member the source's tensor."""

    ref_id: str
    src_rank_in_group: int
    in_place: bool


@dataclass(frozen=True, slots=True)
class Gather:
    """Give the destination all members' tensors, concatenated along `dim`."""

    ref_id: str
    dst_rank_in_group: int
    dim: int


@dataclass(frozen=True, slots=True)
class AllReduce:
    """Give every member the reduction of all members' tensors."""

    ref_id: str
    op: ReduceOp
    in_place: bool


@dataclass(frozen=True, slots=True)
class AllGather:
    """Give every member all members' tensors, concatenated along `dim`."""

    ref_id: str
    dim: int


def _barrier(site: Site, args: Barrier) -> Plan:
    return TensorPlan(site, "", lambda coordinator, timeout: coordinator.barrier(timeout))


def _broadcast(site: Site, args: Broadcast) -> Plan:
    cell = site.cell(args.ref_id)
    src = site.member("src_rank_in_group", args.src_rank_in_group)
    spec = cell.ref.spec
    return TensorPlan(
        site,
        f"dtype={spec.dtype} shape={list(spec.shape)} src_rank_in_group={src}",
        lambda coordinator, timeout: coordinator.broadcast(cell.tensor, src, timeout),
        result=None if args.in_place else spec,
        in_place=cell if args.in_place else None,
    )


def _gather(site: Site, args: Gather) -> Plan:
    cell = site.cell(args.ref_id)
    dst = site.member("dst_rank_in_group", args.dst_rank_in_group)
    spec = cell.ref.spec
    dim = spec.dimension(args.dim)
    receives = site.membership.rank_in_group == dst
    return TensorPlan(
        site,
        f"dtype={spec.dtype} shape={list(spec.shape)} dst_rank_in_group={dst} dim={dim}",
        lambda coordinator, timeout: coordinator.gather(cell.tensor, dst, dim, timeout),
        result=spec.concatenated(site.size, dim) if receives else None,
    )


def _all_reduce(site: Site, args: AllReduce) -> Plan:
    cell = site.cell(args.ref_id)
    spec = cell.ref.spec
    if not site.backend.reduces(args.op, spec.dtype):
        raise BridgeError.of(
            ErrorCode.UNSUPPORTED_DTYPE,
            f"backend {site.backend.name!r} has no all_reduce with op {str(args.op)!r} for dtype {spec.dtype}",
        )
    return TensorPlan(
        site,
        f"dtype={spec.dtype} shape={list(spec.shape)} op={args.op}",
        lambda coordinator, timeout: coordinator.all_reduce(cell.tensor, args.op, timeout),
        result=None if args.in_place else spec,
        in_place=cell if args.in_place else None,
    )


def _all_gather(site: Site, args: AllGather) -> Plan:
    cell = site.cell(args.ref_id)
    spec = cell.ref.spec
    dim = spec.dimension(args.dim)
    return TensorPlan(
        site,
        f"dtype={spec.dtype} shape={list(spec.shape)} dim={dim}",
        lambda coordinator, timeout: coordinator.all_gather(cell.tensor, dim, timeout),
        result=spec.concatenated(site.size, dim),
    )


BARRIER: Operation[Barrier] = Operation("barrier", _barrier)
BROADCAST: Operation[Broadcast] = Operation("broadcast", _broadcast)
GATHER: Operation[Gather] = Operation("gather", _gather)
ALL_REDUCE: Operation[AllReduce] = Operation("all_reduce", _all_reduce)
ALL_GATHER: Operation[AllGather] = Operation("all_gather", _all_gather)
NEW_GROUP: Operation[NewGroup] = Operation("new_group", plan_new_group)
DESTROY_GROUP: Operation[DestroyGroup] = Operation("destroy_group", plan_destroy_group)
