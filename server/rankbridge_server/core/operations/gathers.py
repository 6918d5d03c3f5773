"""The collectives that put all members' tensors together."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum

from ..errors import BridgeError, ErrorCode, Phase, disagreeing_ranks, invalid
from ..refs.tensors import MAX_DIMENSIONS, TensorSpec
from .operation import Entry, Plan, Site, operation
from .outcome import Outcome
from .payloads import pack_numbers, unpack_numbers
from .reserving import give_back, reserve, reserve_on_all
from .sizes import Sizes, sizes_around_part

Shape = tuple[int, ...]


class GatherLayout(Enum):
    """How tensors are put together. Names are those of `rankbridge.v1.GatherLayout`."""

    CONCATENATED = "concatenated"
    STACKED = "stacked"
    LIST = "list"


@dataclass(frozen=True, slots=True)
class Gather:
    """Give the destination all members' tensors, put together along `dim`; None: the layout's own.

    `sizes` of the members' tensors along `dim`, by rank in group; empty: all are alike, unless they are `ragged`: then
    they tell each other.
    """

    ref_id: str
    dst_rank_in_group: int
    dim: int | None = None
    sizes: Sizes = ()
    layout: GatherLayout = GatherLayout.CONCATENATED
    ragged: bool = False


@dataclass(frozen=True, slots=True)
class AllGather:
    """Give every member all members' tensors, put together along `dim`; all as of `Gather`."""

    ref_id: str
    dim: int | None = None
    sizes: Sizes = ()
    layout: GatherLayout = GatherLayout.CONCATENATED
    ragged: bool = False


@operation(recorded=True)
def gather(site: Site, args: Gather) -> Plan:
    """Members agree on dtypes, dims, sizes, layouts, destinations, and on shapes but for what they exchange."""
    dst = site.member("dst_rank_in_group", args.dst_rank_in_group)

    def move(entry: Entry, tensor: object, dim: int, sizes: Sizes) -> object | None:
        return entry.coordinator.gather(tensor, dst, dim, sizes, entry.timeout)

    receives = site.membership.rank_in_group == dst
    return GatherPlan(site, args, f" dst_rank_in_group={dst}", move, receives=receives)


@operation(recorded=True)
def all_gather(site: Site, args: AllGather) -> Plan:
    """Members agree on dtypes, dims, sizes, layouts, and on shapes but for what they exchange."""

    def move(entry: Entry, tensor: object, dim: int, sizes: Sizes) -> object | None:
        return entry.coordinator.all_gather(tensor, dim, sizes, entry.timeout)

    return GatherPlan(site, args, "", move, receives=True)


Move = Callable[[Entry, object, int, Sizes], object | None]
"""Enter the backend with a tensor, to be concatenated along a dim with the others, of these sizes."""


def _dim(spec: TensorSpec, args: Gather | AllGather) -> int:
    """The dimension along which tensors are laid out, counted from the first."""
    if args.layout is GatherLayout.CONCATENATED or args.sizes:
        return spec.dimension(-1 if args.dim is None else args.dim)
    if args.layout is GatherLayout.STACKED:
        if len(spec.shape) == MAX_DIMENSIONS:
            raise invalid("too many dimensions to stack", expected=f"at most {MAX_DIMENSIONS - 1}")
        # The new dimension may come behind all others as well.
        return TensorSpec(spec.dtype, (*spec.shape, 1), spec.device).dimension(args.dim or 0)
    return 0


class GatherPlan:
    """Puts tensors together. Room is set aside at once, unless the members' shapes are unknown before the arrivals.

    `more`: further terms. `receives`: this member gets the result.
    """

    def __init__(
        self, site: Site, args: Gather | AllGather, more: str, move: Move, *, receives: bool
    ) -> None:
        self._site = site
        self._cell = site.cell(args.ref_id)
        self._spec = spec = self._cell.ref.spec
        self._layout = args.layout
        self._dim = dim = _dim(spec, args)
        self._move = move
        self._receives = receives
        # None: not known yet.
        self._shapes: tuple[Shape, ...] | None = (spec.shape,) * site.size
        terms = f"dtype={spec.dtype} shape={list(spec.shape)} dim={dim}"
        if args.sizes:
            if args.ragged or args.layout is GatherLayout.STACKED:
                raise invalid(
                    "sizes are of tensors that are concatenated or listed and not ragged",
                    got=str(list(args.sizes)),
                )
            sizes = sizes_around_part(
                "sizes", args.sizes, spec, dim, site.size, site.membership.rank_in_group
            )
            terms = f"dtype={spec.dtype} shape={spec.shape_without(dim)} dim={dim} sizes={list(sizes)}"
            self._shapes = tuple(spec.resized(dim, size).shape for size in sizes)
        elif args.ragged:
            terms, self._shapes = f"dtype={spec.dtype} dim={dim} ragged", None
        if args.layout is not GatherLayout.CONCATENATED:
            terms += f" layout={args.layout.value}"
        self.terms = terms + more
        self._slots = [] if self._shapes is None else reserve(site, self._results(self._shapes))

    def payload(self) -> bytes:
        """This rank's shape, where they may differ, after its length: that of a 0-dimensional tensor is not empty."""
        return pack_numbers((len(self._spec.shape), *self._spec.shape)) if self._shapes is None else b""

    def run(self, entry: Entry) -> Callable[[], Outcome]:
        """Run the collective on flat tensors, or along the dimension if there is one."""
        shapes = self._shapes
        if shapes is None:
            shapes = self._learned(entry.payloads)
            self._slots = reserve_on_all(self._site, entry, self._results(shapes))
        results = self._gathered(entry, shapes)
        return lambda: self._commit(results)

    @property
    def settled(self) -> bool:
        """Whether all members' shapes are known, so that `run` has nothing to ask them."""
        return self._shapes is not None

    def settle(self, payloads: Sequence[bytes]) -> None:
        """Learn all members' shapes, and set room aside on this rank alone.

        Raises MISMATCH, the same on every member, or RESOURCE_EXHAUSTED.
        """
        self._shapes = self._learned(payloads)
        self._slots = reserve(self._site, self._results(self._shapes))

    def abandon(self) -> None:
        """Gives the results' room back, unless it was used."""
        give_back(self._slots)

    def _results(self, shapes: tuple[Shape, ...]) -> list[TensorSpec]:
        if not self._receives:
            return []
        spec, dim = self._spec, self._dim
        if self._layout is GatherLayout.LIST:
            return [TensorSpec(spec.dtype, shape, spec.device) for shape in shapes]
        if self._layout is GatherLayout.STACKED:
            shape = (*spec.shape[:dim], len(shapes), *spec.shape[dim:])
            return [TensorSpec(spec.dtype, shape, spec.device)]
        return [spec.resized(dim, sum(shape[dim] for shape in shapes))]

    def _gathered(self, entry: Entry, shapes: tuple[Shape, ...]) -> Sequence[object]:
        tensors, tensor, spec, dim = self._site.backend.tensors, self._cell.tensor, self._spec, self._dim
        if self._layout is GatherLayout.LIST:
            counts = tuple(TensorSpec(spec.dtype, shape, spec.device).elements for shape in shapes)
            flat = self._move(entry, tensors.reshaped(tensor, (spec.elements,)), 0, counts)
            return [] if flat is None else tensors.cut(flat, shapes)
        if self._layout is GatherLayout.STACKED:
            unit = tensors.reshaped(tensor, (*spec.shape[:dim], 1, *spec.shape[dim:]))
            whole = self._move(entry, unit, dim, (1,) * len(shapes))
        else:
            whole = self._move(entry, tensor, dim, tuple(shape[dim] for shape in shapes))
        return [] if whole is None else [whole]

    def _commit(self, results: Sequence[object]) -> Outcome:
        refs: list[Outcome] = [slot.fill(it) for slot, it in zip(self._slots, results, strict=True)]
        if not self._receives:
            return None
        return refs if self._layout is GatherLayout.LIST else refs[0]

    def _learned(self, payloads: Sequence[bytes]) -> tuple[Shape, ...]:
        """All members' shapes. Raises the same MISMATCH on every member when they do not go together."""
        shapes = tuple(unpack_numbers(payload)[1:] for payload in payloads)
        if self._layout is GatherLayout.LIST:
            return shapes
        bare = [_bare(shape, self._dim, self._layout) for shape in shapes]
        odd = [place for place, shape in enumerate(bare) if shape != bare[0]]
        if not odd:
            return shapes
        ranks = self._site.group.description.ranks
        raise BridgeError.of(
            ErrorCode.MISMATCH,
            f"the members' tensors cannot be {self._layout.value} along dim {self._dim}",
            phase=Phase.ADMISSION,
            expected=f"shapes that go with rank {ranks[0]}'s {list(shapes[0])}",
            got="; ".join(f"{list(shapes[place])} of rank {ranks[place]}" for place in odd[:8]),
            ranks=disagreeing_ranks(ranks, odd, [f"shape={list(shape)}" for shape in shapes]),
        )


def _bare(shape: Shape, dim: int, layout: GatherLayout) -> tuple[int | None, ...]:
    if layout is GatherLayout.STACKED:
        return shape
    return tuple(None if at == dim else size for at, size in enumerate(shape))
