"""Tensors that a process on a rank has exposed under a name: finding, summarising and comparing them. No I/O."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from rankbridge._plan import operations as ops
from rankbridge._plan.functions import Arguments
from rankbridge._plan.gang_core import GangCore, all_values, new_id
from rankbridge._plan.groups import Group
from rankbridge._plan.procedures import Procedure, members_of
from rankbridge._plan.ref import Ref

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedTensor:
    """A tensor that a rank has exposed.

    Attributes:
        dtype: "float32".
        shape: Sizes, outermost first.
        device: "cpu", "cuda:0".
        writable: Whether controllers may change its elements.
    """

    dtype: str
    shape: tuple[int, ...]
    device: str
    writable: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """How the tensor of one rank differs from the reference's.

    Attributes:
        elements: How many elements differ.
        first: Where the first does, counted in row-major order.
        most: The largest difference between two elements of which neither is NaN or infinite.
    """

    elements: int
    first: int
    most: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """A tensor whose replicas differ.

    Attributes:
        name: Its name.
        reference: The lowest of the ranks that have the tensor which most ranks have.
        differing: By rank, how its tensor differs; None: it has none of that name, or another dtype or shape.
    """

    name: str
    reference: int
    differing: Mapping[int, Difference | None]


Procedures = Procedure[dict[str, list[Any]]]


def asking(
    gang: GangCore[Any], function: str, pattern: str, group: str | Group, convert: Any = lambda it: it
) -> Procedures:
    """Calls one of the bridge's own functions on every member, each alone; gives what they say of each name."""
    members = yield from members_of(gang, group)
    said = all_values((yield _alone(gang, members, function, pattern)))
    names = sorted({name for each in said for name in each})
    return {name: [convert(each[name]) if name in each else None for each in said] for name in names}


def comparing(gang: GangCore[Any], pattern: str, group: str | Group) -> Procedure[list[Comparison]]:
    """Finds the tensors whose replicas differ, and how; their elements stay on the ranks."""
    members = yield from members_of(gang, group)
    summaries: dict[str, list[Any]] = yield from asking(gang, "summary", pattern, group)
    found = []
    for name, each in summaries.items():
        hashes = [None if it is None else it["hash"] for it in each]
        if len(set(hashes)) == 1:
            continue
        place = _reference(hashes)
        alike = [it is not None and _kind(it) == _kind(each[place]) for it in each]
        amounts: list[Any] = [None] * len(members)
        if all(alike):
            amounts = yield from _differences(gang, name, members, group, place)
        differing = {
            rank: None if it is None else Difference(**it)
            for rank, it, own in zip(members, amounts, hashes, strict=True)
            if own != hashes[place]
        }
        found.append(Comparison(name=name, reference=members[place], differing=differing))
    return found


def _reference(hashes: Sequence[str | None]) -> int:
    """The place of the first member that has what most have."""
    count = Counter(it for it in hashes if it is not None)
    most = max(count.values())
    return next(place for place, it in enumerate(hashes) if it is not None and count[it] == most)


def _kind(summary: Any) -> tuple[Any, Any]:
    return summary["dtype"], tuple(summary["shape"])


def _differences(
    gang: GangCore[Any], name: str, members: Sequence[int], group: str | Group, place: int
) -> Procedure[list[Any]]:
    """Brings the reference's tensor to every member, by the backend, and lets each compare its own with it."""
    taken = all_values((yield _alone(gang, members, "take", _literal(name))))
    own: list[Ref] = [it[name] for it in taken]
    options = {"src_rank_in_group": place, "group": group, "operation_id": new_id()}
    broadcast = ops.find_operation("broadcast")
    calls = [broadcast(gang._scope(ref.rank), ref, **options) for ref in own]
    reference: list[Ref] = all_values((yield gang._together(None, calls)))
    pairs = zip(members, own, reference, strict=True)
    differences = all_values(
        (yield [call for rank, *refs in pairs for call in _alone(gang, [rank], "difference", *refs)])
    )
    yield gang._releases([*own, *reference])
    return differences


def _alone(gang: GangCore[Any], ranks: Sequence[int], function: str, *args: object) -> Any:
    name = f"rankbridge.{function}"
    return gang._on(ranks, ops.call_function, Arguments(args, {}), function=name, alone=True)


def _literal(name: str) -> str:
    """A pattern that matches this name alone."""
    return "".join(f"[{it}]" if it in "*?[" else it for it in name)
