"""The collectives that move one member's tensor to all."""

from __future__ import annotations

from dataclasses import dataclass

from .operation import Plan, Site, operation, tensor_plan
from .sizes import equal_sizes


@dataclass(frozen=True, slots=True)
class Broadcast:
    """Give every member the source's tensor."""

    ref_id: str
    src_rank_in_group: int
    in_place: bool


@dataclass(frozen=True, slots=True)
class Scatter:
    """Give every member its part of the source's tensor, which is divided equally along `dim`.

    `ref_id`: at the source the whole, elsewhere a tensor like the part.
    """

    ref_id: str
    src_rank_in_group: int
    dim: int


@operation(recorded=True)
def broadcast(site: Site, args: Broadcast) -> Plan:
    """Equal dtypes, shapes and sources."""
    cell = site.cell(args.ref_id)
    src = site.member("src_rank_in_group", args.src_rank_in_group)
    spec = cell.ref.spec
    return tensor_plan(
        site,
        f"dtype={spec.dtype} shape={list(spec.shape)} src_rank_in_group={src}",
        lambda entry: entry.coordinator.broadcast(cell.tensor, src, entry.timeout),
        result=None if args.in_place else spec,
        in_place=cell if args.in_place else None,
    )


@operation(recorded=True)
def scatter(site: Site, args: Scatter) -> Plan:
    """Equal dtypes, shapes of the part, dims and sources."""
    cell = site.cell(args.ref_id)
    src = site.member("src_rank_in_group", args.src_rank_in_group)
    spec = cell.ref.spec
    dim = spec.dimension(args.dim)
    if site.membership.rank_in_group == src:
        spec = spec.resized(dim, equal_sizes(spec, dim, site.size)[0])
    return tensor_plan(
        site,
        f"dtype={spec.dtype} part={list(spec.shape)} src_rank_in_group={src} dim={dim}",
        lambda entry: entry.coordinator.scatter(cell.tensor, src, dim, entry.timeout),
        result=spec,
    )
