"""The collectives on values by value: bytes to the core, of whatever length."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ..errors import invalid
from .operation import Entry, Plan, SimplePlan, Site, operation
from .outcome import Outcome, Packed
from .payloads import as_bytes, as_tensor, bytes_spec, check_total, pack_numbers, unpack_numbers


@dataclass(frozen=True, slots=True)
class BroadcastObject:
    """Give every member the source's value. `value`: at the source; None elsewhere."""

    value: Packed | None
    src_rank_in_group: int


@dataclass(frozen=True, slots=True)
class ScatterObject:
    """Give every member its own of the source's values. `values`: at the source, one for each member."""

    values: tuple[Packed, ...] | None
    src_rank_in_group: int


@dataclass(frozen=True, slots=True)
class GatherObject:
    """Give the destination all members' values."""

    value: Packed
    dst_rank_in_group: int


@dataclass(frozen=True, slots=True)
class AllGatherObject:
    """Give every member all members' values."""

    value: Packed


@operation()
def broadcast_object(site: Site, args: BroadcastObject) -> Plan:
    """Members agree on the source, which sends all its length."""
    src = site.member("src_rank_in_group", args.src_rank_in_group)
    given = b""
    if site.membership.rank_in_group == src:
        if args.value is None:
            raise invalid("value is missing", expected="at the source a value", got="none")
        given = args.value.data
        check_total([len(given)])

    def run(entry: Entry) -> Outcome:
        (length,) = unpack_numbers(entry.payloads[src])
        tensors = site.backend.tensors
        tensor = as_tensor(tensors, given) if given else tensors.empty(bytes_spec(length, tensors.device))
        return Packed(as_bytes(site.backend.tensors, entry.coordinator.broadcast(tensor, src, entry.timeout)))

    return object_plan(f"src_rank_in_group={src}", pack_numbers([len(given)]), run)


@operation()
def scatter_object(site: Site, args: ScatterObject) -> Plan:
    """Members agree on the source, which sends all its lengths."""
    src = site.member("src_rank_in_group", args.src_rank_in_group)
    given: Sequence[bytes] = [b""] * site.size
    if site.membership.rank_in_group == src:
        got = "none" if args.values is None else str(len(args.values))
        if args.values is None or len(args.values) != site.size:
            raise invalid(
                "values do not fit the group", expected=f"at the source {site.size} values", got=got
            )
        given = [it.data for it in args.values]
        check_total([len(it) for it in given])

    def run(entry: Entry) -> Outcome:
        lengths = unpack_numbers(entry.payloads[src])
        nothing = [0] * site.size
        sizes = [lengths if rank == src else nothing for rank in range(site.size)]
        mine = as_tensor(site.backend.tensors, b"".join(given))
        return Packed(
            as_bytes(site.backend.tensors, entry.coordinator.all_to_all(mine, 0, sizes, entry.timeout))
        )

    return object_plan(f"src_rank_in_group={src}", pack_numbers([len(it) for it in given]), run)


@operation()
def gather_object(site: Site, args: GatherObject) -> Plan:
    """Members agree on the destination; each sends all its length."""
    dst = site.member("dst_rank_in_group", args.dst_rank_in_group)

    def run(entry: Entry) -> Outcome:
        lengths = _lengths(entry)
        mine = as_tensor(site.backend.tensors, args.value.data)
        whole = entry.coordinator.gather(mine, dst, 0, lengths, entry.timeout)
        return None if whole is None else _cut(as_bytes(site.backend.tensors, whole), lengths)

    return object_plan(f"dst_rank_in_group={dst}", pack_numbers([len(args.value.data)]), run)


@operation()
def all_gather_object(site: Site, args: AllGatherObject) -> Plan:
    """Members have nothing to agree on; each sends all its length."""

    def run(entry: Entry) -> Outcome:
        lengths = _lengths(entry)
        mine = as_tensor(site.backend.tensors, args.value.data)
        whole = entry.coordinator.all_gather(mine, 0, lengths, entry.timeout)
        return _cut(as_bytes(site.backend.tensors, whole), lengths)

    return object_plan("", pack_numbers([len(args.value.data)]), run)


def object_plan(terms: str, payload: bytes, enter: Callable[[Entry], Outcome]) -> Plan:
    """A collective that keeps nothing on the rank: what `enter` gives goes to the caller."""

    def run(entry: Entry) -> Callable[[], Outcome]:
        outcome = enter(entry)
        return lambda: outcome

    return SimplePlan(terms, run, payload)


def _lengths(entry: Entry) -> list[int]:
    lengths = [unpack_numbers(payload)[0] for payload in entry.payloads]
    check_total(lengths)
    return lengths


def _cut(whole: bytes, lengths: Sequence[int]) -> Outcome:
    pieces: list[Outcome] = []
    start = 0
    for length in lengths:
        pieces.append(Packed(whole[start : start + length]))
        start += length
    return pieces
