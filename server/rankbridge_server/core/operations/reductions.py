"""The collectives that combine members' tensors, element by element."""

from __future__ import annotations

from dataclasses import dataclass

from ..coordinator import ReduceOp
from ..errors import BridgeError, ErrorCode, invalid
from ..refs.refs import Cell
from .operation import Plan, Site, operation, tensor_plan
from .sizes import Sizes, equal_sizes, sizes_of_whole


@dataclass(frozen=True, slots=True)
class Reduce:
    """Give the destination the reduction of all members' tensors."""

    ref_id: str
    op: ReduceOp
    dst_rank_in_group: int


@dataclass(frozen=True, slots=True)
class AllReduce:
    """Give every member the reduction of all members' tensors."""

    ref_id: str
    op: ReduceOp
    in_place: bool


@dataclass(frozen=True, slots=True)
class ReduceScatter:
    """Give every member its part of the reduction of all members' tensors.

    `sizes` of the parts along `dim`, by rank in group; empty: equal parts.
    """

    ref_id: str
    op: ReduceOp
    dim: int
    sizes: Sizes


@dataclass(frozen=True, slots=True)
class Scan:
    """Give member m the reduction of the tensors of members 0 to m; `exclusive`: to m - 1, and member 0 zeros."""

    ref_id: str
    op: ReduceOp
    exclusive: bool = False


@operation(recorded=True)
def reduce(site: Site, args: Reduce) -> Plan:
    """Equal dtypes, shapes, ops and destinations."""
    cell = _reducible(site, args.ref_id, args.op, "reduce")
    dst = site.member("dst_rank_in_group", args.dst_rank_in_group)
    spec = cell.ref.spec
    receives = site.membership.rank_in_group == dst
    return tensor_plan(
        site,
        f"dtype={spec.dtype} shape={list(spec.shape)} op={args.op} dst_rank_in_group={dst}",
        lambda entry: entry.coordinator.reduce(cell.tensor, args.op, dst, entry.timeout),
        result=spec if receives else None,
    )


@operation(recorded=True)
def all_reduce(site: Site, args: AllReduce) -> Plan:
    """Equal dtypes, shapes and ops."""
    cell = _reducible(site, args.ref_id, args.op, "all_reduce")
    spec = cell.ref.spec
    return tensor_plan(
        site,
        f"dtype={spec.dtype} shape={list(spec.shape)} op={args.op}",
        lambda entry: entry.coordinator.all_reduce(cell.tensor, args.op, entry.timeout),
        result=None if args.in_place else spec,
        in_place=cell if args.in_place else None,
    )


@operation(recorded=True)
def reduce_scatter(site: Site, args: ReduceScatter) -> Plan:
    """Equal dtypes, shapes, ops, dims and sizes."""
    cell = _reducible(site, args.ref_id, args.op, "reduce_scatter")
    spec = cell.ref.spec
    dim = spec.dimension(args.dim)
    terms = f"dtype={spec.dtype} shape={list(spec.shape)} op={args.op} dim={dim}"
    if args.sizes:
        sizes = sizes_of_whole("sizes", args.sizes, spec, dim, site.size)
        terms += f" sizes={list(sizes)}"
    else:
        sizes = equal_sizes(spec, dim, site.size)
    return tensor_plan(
        site,
        terms,
        lambda entry: entry.coordinator.reduce_scatter(cell.tensor, args.op, dim, sizes, entry.timeout),
        result=spec.resized(dim, sizes[site.membership.rank_in_group]),
    )


@operation(recorded=True)
def scan(site: Site, args: Scan) -> Plan:
    """Equal dtypes, shapes and ops."""
    if args.op is ReduceOp.AVG or (args.exclusive and args.op is not ReduceOp.SUM):
        expected = "sum" if args.exclusive else "any but avg"
        raise invalid("a scan cannot be done with this op", expected=expected, got=str(args.op))
    cell = _reducible(site, args.ref_id, args.op, "scan")
    spec = cell.ref.spec
    return tensor_plan(
        site,
        f"dtype={spec.dtype} shape={list(spec.shape)} op={args.op}"
        + (" exclusive" if args.exclusive else ""),
        lambda entry: entry.coordinator.scan(cell.tensor, args.op, args.exclusive, entry.timeout),
        result=spec,
    )


def _reducible(site: Site, ref_id: str, op: ReduceOp, operation: str) -> Cell:
    cell = site.cell(ref_id)
    dtype = cell.ref.spec.dtype
    if not site.backend.reduces(op, dtype):
        raise BridgeError.of(
            ErrorCode.UNSUPPORTED_DTYPE,
            f"backend {site.backend.name!r} has no {operation} with op {str(op)!r} for dtype {dtype}",
        )
    return cell
