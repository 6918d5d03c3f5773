"""The collectives that move members' tensors as they are."""

from __future__ import annotations

from dataclasses import dataclass

from .operation import Plan, Site, TensorPlan
from .sizes import Sizes, equal_sizes, sizes_around_part
from .tensors import TensorSpec


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


@dataclass(frozen=True, slots=True)
class Gather:
    """Give the destination all members' tensors, concatenated along `dim`.

    `sizes` of the members' tensors along `dim`, by rank in group; empty: all are alike.
    """

    ref_id: str
    dst_rank_in_group: int
    dim: int
    sizes: Sizes = ()


@dataclass(frozen=True, slots=True)
class AllGather:
    """Give every member all members' tensors, concatenated along `dim`; `sizes` as of `Gather`."""

    ref_id: str
    dim: int
    sizes: Sizes = ()


def plan_broadcast(site: Site, args: Broadcast) -> Plan:
    """Equal dtypes, shapes and sources."""
    cell = site.cell(args.ref_id)
    src = site.member("src_rank_in_group", args.src_rank_in_group)
    spec = cell.ref.spec
    return TensorPlan(
        site,
        f"dtype={spec.dtype} shape={list(spec.shape)} src_rank_in_group={src}",
        lambda entry: entry.coordinator.broadcast(cell.tensor, src, entry.timeout),
        result=None if args.in_place else spec,
        in_place=cell if args.in_place else None,
    )


def plan_scatter(site: Site, args: Scatter) -> Plan:
    """Equal dtypes, shapes of the part, dims and sources."""
    cell = site.cell(args.ref_id)
    src = site.member("src_rank_in_group", args.src_rank_in_group)
    spec = cell.ref.spec
    dim = spec.dimension(args.dim)
    if site.membership.rank_in_group == src:
        spec = spec.resized(dim, equal_sizes(spec, dim, site.size)[0])
    return TensorPlan(
        site,
        f"dtype={spec.dtype} part={list(spec.shape)} src_rank_in_group={src} dim={dim}",
        lambda entry: entry.coordinator.scatter(cell.tensor, src, dim, entry.timeout),
        result=spec,
    )


def plan_gather(site: Site, args: Gather) -> Plan:
    """Equal dtypes, shapes but for what `sizes` says, dims, sizes and destinations."""
    cell = site.cell(args.ref_id)
    dst = site.member("dst_rank_in_group", args.dst_rank_in_group)
    parts = _parts(site, cell.ref.spec, args.dim, args.sizes)
    receives = site.membership.rank_in_group == dst
    return TensorPlan(
        site,
        f"{parts.terms} dst_rank_in_group={dst}",
        lambda entry: entry.coordinator.gather(cell.tensor, dst, parts.dim, parts.sizes, entry.timeout),
        result=parts.whole if receives else None,
    )


def plan_all_gather(site: Site, args: AllGather) -> Plan:
    """Equal dtypes, shapes but for what `sizes` says, dims and sizes."""
    cell = site.cell(args.ref_id)
    parts = _parts(site, cell.ref.spec, args.dim, args.sizes)
    return TensorPlan(
        site,
        parts.terms,
        lambda entry: entry.coordinator.all_gather(cell.tensor, parts.dim, parts.sizes, entry.timeout),
        result=parts.whole,
    )


@dataclass(frozen=True, slots=True)
class _Parts:
    """Members' tensors that are put together along `dim`. `terms`: what members must agree on for it."""

    dim: int
    sizes: Sizes
    whole: TensorSpec
    terms: str


def _parts(site: Site, spec: TensorSpec, dim: int, given: Sizes) -> _Parts:
    dim = spec.dimension(dim)
    if given:
        rank_in_group = site.membership.rank_in_group
        sizes = sizes_around_part("sizes", given, spec, dim, site.size, rank_in_group)
        terms = f"dtype={spec.dtype} shape={spec.shape_without(dim)} dim={dim} sizes={list(sizes)}"
    else:
        sizes = (spec.shape[dim],) * site.size
        terms = f"dtype={spec.dtype} shape={list(spec.shape)} dim={dim}"
    return _Parts(dim, sizes, spec.resized(dim, sum(sizes)), terms)
