"""The collectives that move one member's tensor to all."""

from __future__ import annotations

from dataclasses import dataclass

from ..refs.tensors import TensorSpec
from .operation import Plan, Site, operation, tensor_plan
from .sizes import Sizes, equal_sizes, sizes_around_part, sizes_of_whole


@dataclass(frozen=True, slots=True)
class Broadcast:
    """Give every member the source's tensor."""

    ref_id: str
    src_rank_in_group: int
    in_place: bool


@dataclass(frozen=True, slots=True)
class Scatter:
    """Give every member its part of the source's tensor, which is divided along `dim`.

    `ref_id`: at the source the whole, elsewhere a tensor like the part. `sizes` of the parts along `dim`, by rank in
    group; empty: equal parts.
    """

    ref_id: str
    src_rank_in_group: int
    dim: int
    sizes: Sizes = ()


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
    """Equal dtypes, shapes of the part but for the sizes, dims, sources and sizes."""
    cell = site.cell(args.ref_id)
    src = site.member("src_rank_in_group", args.src_rank_in_group)
    spec = cell.ref.spec
    dim = spec.dimension(args.dim)
    rank_in_group = site.membership.rank_in_group
    sizes = _sizes(spec, args.sizes, dim, site.size, rank_in_group, holds_whole=rank_in_group == src)
    part = spec.resized(dim, sizes[rank_in_group])
    shape = spec.shape_without(dim) if args.sizes else list(part.shape)
    terms = f"dtype={spec.dtype} part={shape} src_rank_in_group={src} dim={dim}"
    return tensor_plan(
        site,
        f"{terms} sizes={list(sizes)}" if args.sizes else terms,
        lambda entry: entry.coordinator.scatter(cell.tensor, src, dim, sizes, entry.timeout),
        result=part,
    )


def _sizes(
    spec: TensorSpec, given: Sizes, dim: int, members: int, rank_in_group: int, *, holds_whole: bool
) -> Sizes:
    """The sizes of all parts, which fit this rank's tensor: the whole, or its part."""
    if given and holds_whole:
        return sizes_of_whole("sizes", given, spec, dim, members)
    if given:
        return sizes_around_part("sizes", given, spec, dim, members, rank_in_group)
    return equal_sizes(spec, dim, members) if holds_whole else (spec.shape[dim],) * members
