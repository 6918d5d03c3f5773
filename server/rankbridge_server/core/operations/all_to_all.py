"""The collective in which every member sends every member a part of its own."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from dataclasses import dataclass

from ..errors import BridgeError, ErrorCode, Phase, disagreeing_ranks, invalid
from ..refs.tensors import TensorSpec
from .operation import Entry, Plan, Site, operation, tensor_plan
from .payloads import pack_numbers, unpack_numbers
from .sizes import Sizes, checked_sizes, equal_sizes, sizes_of_whole

_SHOWN = 8


@dataclass(frozen=True, slots=True)
class AllToAll:
    """Divide every member's tensor along `dim`, and give every member its parts of all of them, concatenated.

    `input_sizes`, `output_sizes`: along `dim`, of what goes to and what comes from each member, by rank in group; both
    empty: equal parts.
    """

    ref_id: str
    dim: int
    input_sizes: Sizes = ()
    output_sizes: Sizes = ()


@operation(recorded=True)
def all_to_all(site: Site, args: AllToAll) -> Plan:
    """Equal dtypes, shapes but for the sizes, and dims; and of any two members, what one sends the other expects."""
    cell = site.cell(args.ref_id)
    spec = cell.ref.spec
    dim = spec.dimension(args.dim)
    if not args.input_sizes and not args.output_sizes:
        matrix = (equal_sizes(spec, dim, site.size),) * site.size
        return tensor_plan(
            site,
            f"dtype={spec.dtype} shape={list(spec.shape)} dim={dim}",
            lambda entry: entry.coordinator.all_to_all(cell.tensor, dim, matrix, entry.timeout),
            result=spec,
        )
    sent, received = _checked(site, args, spec, dim)

    def enter(entry: Entry) -> object:
        sizes = _agreed(site, dim, entry.payloads)
        return entry.coordinator.all_to_all(cell.tensor, dim, sizes, entry.timeout)

    return tensor_plan(
        site,
        f"dtype={spec.dtype} shape={spec.shape_without(dim)} dim={dim} sizes=given",
        enter,
        result=spec.resized(dim, sum(received)),
        # Every member's sizes are its own, so that they are no part of the contract: all members compare them all.
        payload=_packed((sent, received)),
    )


def _checked(site: Site, args: AllToAll, spec: TensorSpec, dim: int) -> tuple[Sizes, Sizes]:
    if not args.input_sizes or not args.output_sizes:
        raise invalid(
            "one of input_sizes and output_sizes is missing",
            expected="both, or neither for equal parts",
            got="input_sizes alone" if args.input_sizes else "output_sizes alone",
        )
    rank_in_group = site.membership.rank_in_group
    sent = sizes_of_whole("input_sizes", args.input_sizes, spec, dim, site.size)
    received = checked_sizes("output_sizes", args.output_sizes, site.size)
    if sent[rank_in_group] != received[rank_in_group]:
        raise invalid(
            "output_sizes do not fit input_sizes",
            expected=f"{sent[rank_in_group]} from this rank itself, which sends itself that",
            got=f"{received[rank_in_group]}: {list(received)}",
        )
    return sent, received


def _agreed(site: Site, dim: int, payloads: Sequence[bytes]) -> list[Sizes]:
    """What each member sends each. Raises the same MISMATCH on every member when one expects something else."""
    all_sizes = [_unpacked(payload, site.size) for payload in payloads]
    differing = [
        (source, target)
        for source, (sent, _) in enumerate(all_sizes)
        for target, (_, received) in enumerate(all_sizes)
        if sent[target] != received[source]
    ]
    if differing:
        raise _mismatch(site.group.description.ranks, dim, all_sizes, differing)
    return [sent for sent, _ in all_sizes]


def _mismatch(
    ranks: Sequence[int],
    dim: int,
    all_sizes: Sequence[tuple[Sizes, Sizes]],
    differing: Sequence[tuple[int, int]],
) -> BridgeError:
    shown = differing[:_SHOWN]
    more = [f"and {len(differing) - len(shown)} more"] if len(differing) > len(shown) else []
    expects = [f"rank {ranks[b]} expects {all_sizes[b][1][a]} from rank {ranks[a]}" for a, b in shown]
    sends = [f"rank {ranks[a]} sends {all_sizes[a][0][b]} to rank {ranks[b]}" for a, b in shown]
    pairs = [f"ranks {ranks[a]} and {ranks[b]}" for a, b in shown]
    at_odds = {place for pair in differing for place in pair}
    named = {place for pair in shown for place in pair}
    details = [
        f"input_sizes={list(sent)} output_sizes={list(received)}" if place in named else ""
        for place, (sent, received) in enumerate(all_sizes)
    ]
    return BridgeError.of(
        ErrorCode.MISMATCH,
        f"input_sizes and output_sizes along dim {dim} do not fit each other: {', '.join(pairs + more)}",
        phase=Phase.ADMISSION,
        expected="; ".join(expects + more),
        got="; ".join(sends + more),
        ranks=disagreeing_ranks(ranks, at_odds, details),
    )


def _packed(sizes: tuple[Sizes, Sizes]) -> bytes:
    sent, received = sizes
    return zlib.compress(pack_numbers((*sent, *received)), 1)


def _unpacked(payload: bytes, members: int) -> tuple[Sizes, Sizes]:
    both = unpack_numbers(zlib.decompress(payload))
    return both[:members], both[members:]
