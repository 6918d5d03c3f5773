"""What members of a group asked for in the same call: sides, and which of them differ in what they must agree on."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from math import prod

from .evidence import Call, Evidence, Group, RankEvidence
from .numbering import collectives
from .verdict import Kind

# Lists may have parts of unequal size on some backends.
_SAME_SIZE = {"all_reduce", "broadcast", "reduce", "all_gather_into_tensor", "reduce_scatter_tensor"}
_SAME_SIZE |= {"gather_into_tensor"}
_SAME_DTYPE = _SAME_SIZE | {"all_gather", "reduce_scatter", "all_to_all", "all_to_all_single"}
_WITH_OP = {"all_reduce", "reduce", "reduce_scatter", "reduce_scatter_tensor"}
_WITH_ROOT = {"broadcast", "reduce", "gather", "gather_into_tensor", "scatter"}


@dataclass(frozen=True)
class Mismatch:
    """Members that disagree. `sides`: the call of each member, by what it asked for, the largest side first."""

    kind: Kind
    group: Group
    number: int
    sides: tuple[tuple[str, tuple[tuple[int, Call], ...]], ...]

    @property
    def minority(self) -> tuple[int, ...]:
        """Ranks of all sides but one, if that one has more than half of all members; otherwise empty."""
        largest = len(self.sides[0][1])
        if 2 * largest <= len(self.group.ranks):
            return ()
        return tuple(sorted(rank for _, calls in self.sides[1:] for rank, _ in calls))


def mismatches(evidence: Evidence) -> list[Mismatch]:
    """The first disagreement of each group, those first that came first."""
    found = []
    for group, numbers in collectives(evidence):
        compared = (_compared(group, number, numbers[number]) for number in sorted(numbers))
        first = next((it for it in compared if it is not None), None)
        if first is not None:
            found.append(first)
    return sorted(found, key=_began)


@dataclass(frozen=True)
class TooLarge:
    """A send that does not fit into the receive that takes it."""

    sender: int
    send: Call
    receiver: int
    recv: Call


def too_large(evidence: Evidence) -> TooLarge | None:
    """The first such pair: the nth send of one rank to another with a tag, and the nth receive of it."""
    sends: dict[tuple[object, ...], tuple[int, Call]] = {}
    receives: dict[tuple[object, ...], tuple[int, Call]] = {}
    for rank in evidence.ranks:
        for call in rank.calls:
            if call.kind == "send":
                sends[call.group, rank.rank, call.peer, call.tag, call.number] = rank.rank, call
            elif call.kind == "recv":
                receives[call.group, call.peer, rank.rank, call.tag, call.number] = rank.rank, call
    found = [
        TooLarge(*sends[key], *receives[key])
        for key in sends.keys() & receives.keys()
        if _elements(sends[key][1]) > _elements(receives[key][1]) > 0
    ]
    return min(found, key=lambda it: it.send.called_at or 0.0, default=None)


def _elements(call: Call) -> int:
    return sum(prod(it) for it in call.shapes)


def _began(it: Mismatch) -> float:
    return min((call.called_at or 0.0) for _, calls in it.sides for _, call in calls)


def _compared(group: Group, number: int, calls: list[tuple[RankEvidence, Call]]) -> Mismatch | None:
    # Different sources name and count in their own ways: what they say is not compared.
    if len(calls) < 2 or len({rank.source for rank, _ in calls}) > 1:
        return None
    members = [(rank.rank, call) for rank, call in calls]
    for kind, aspect in _ASPECTS:
        sides: dict[object, list[tuple[int, Call]]] = defaultdict(list)
        for rank, call in members:
            sides[aspect(call)].append((rank, call))
        # Of a job that nobody prepared, stacks tell the root of those that are still in the call, and of nobody else.
        if aspect is _root:
            sides.pop(None, None)
        if None not in sides and len(sides) > 1:
            ordered = sorted(sides.values(), key=lambda it: (-len(it), it[0][0]))
            return Mismatch(kind, group, number, tuple((asked(it[0][1]), tuple(it)) for it in ordered))
    return None


def _kind(call: Call) -> object:
    return call.kind or None


def _dtype(call: Call) -> object:
    if call.kind not in _SAME_DTYPE or not call.dtypes:
        return None
    return tuple(sorted(set(call.dtypes)))


def _size(call: Call) -> object:
    if call.kind not in _SAME_SIZE or not call.shapes:
        return None
    return sum(prod(it) for it in call.shapes)


def _op(call: Call) -> object:
    return call.op if call.kind in _WITH_OP else None


def _root(call: Call) -> object:
    return call.root if call.kind in _WITH_ROOT else None


_ASPECTS = (
    (Kind.MISMATCH_KIND, _kind),
    (Kind.MISMATCH_ROOT, _root),
    (Kind.MISMATCH_DTYPE, _dtype),
    (Kind.MISMATCH_SHAPE, _size),
    (Kind.MISMATCH_OP, _op),
)


def asked(call: Call) -> str:
    """What a call asks for, as `all_reduce float32[4] op=sum`."""
    dtypes = list(dict.fromkeys(call.dtypes))
    shapes = list(dict.fromkeys(call.shapes))[:3]
    tensors = "/".join(dtypes) + ", ".join(str(list(it)) for it in shapes)
    parts = [call.kind, tensors]
    parts += [
        f"{name}={value}" for name, value in (("op", call.op), ("root", call.root)) if value is not None
    ]
    if call.peer is not None:
        parts.append(f"{'to' if call.is_send else 'from'} rank {call.peer}")
    if call.tag is not None:
        parts.append(f"tag={call.tag}")
    return " ".join(filter(None, parts))
