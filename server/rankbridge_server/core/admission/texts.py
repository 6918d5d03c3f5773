"""The texts of MISMATCH and PEER_MISSING for people: a headline, then a line for each side with the ranks that took it.

MISMATCH in all_reduce #1 (x1) on world
  ranks 0-2: float32[3] sum at /home/me/train.py:88
  rank 3:    float32[3] max at /home/me/train.py:91
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from ..rank_intervals import MOST_SHOWN, rank_intervals
from .admission import Member

# A program may have a thousand steps; the error's `ranks` has all of them.
MOST_CHARACTERS = 200

_ARRIVAL = re.compile(r"(?P<contract>.*?) #(?P<sequence>\d+)(?: id=(?P<id>.*))?", re.DOTALL)
_TENSOR = re.compile(r"\bdtype=(\w+) (?:shape|part)=(\[[^\]]*\])")
_OP = re.compile(r"\bop=(\w+)")
_UNEQUAL = {
    **dict.fromkeys(("gather", "all_gather"), "tensors of unequal sizes need `sizes`, or `ragged`"),
    "scatter": "parts of unequal sizes need `sizes`",
}
"""How a caller says that sizes are unequal, by operation."""


class Request(NamedTuple):
    """What ranks asked for, in words, and the line of code that did; empty: not said."""

    text: str
    site: str = ""

    def __str__(self) -> str:
        cut = self.text if len(self.text) <= MOST_CHARACTERS else f"{self.text[:MOST_CHARACTERS]}..."
        return f"{cut} at {self.site}" if self.site else cut


class _Call(NamedTuple):
    """What a member asked for, from the text of its arrival."""

    operation: str
    terms: str
    number: str
    operation_id: str
    site: str

    @classmethod
    def parse(cls, arrival: str, site: str) -> _Call:
        found = _ARRIVAL.fullmatch(arrival)
        contract = found["contract"] if found else arrival
        number, operation_id = (f"#{found['sequence']}", found["id"] or "") if found else ("", "")
        operation, _, terms = contract.partition(" ")
        terms = _OP.sub(r"\1", _TENSOR.sub(r"\1\2", terms))
        return cls(operation, terms, number, f"({operation_id})" if operation_id else "", site)


def disagreement_text(code: str, group: str, members: Mapping[int, Member], summary: str = "") -> str:
    """The text of an error about a group's members, by rank in the gang."""
    calls = {rank: _Call.parse(it.arrival, it.site) for rank, it in members.items() if it.arrival is not None}
    common = {
        field: _only(getattr(call, field) for call in calls.values())
        for field in ("operation", "number", "operation_id", "site")
    }

    def side(call: _Call) -> Request:
        # What the headline says of all members is not repeated.
        own = {field: "" if common[field] else getattr(call, field) for field in common}
        parts = (own["operation"], call.terms, own["number"], own["operation_id"])
        return Request(" ".join(filter(None, parts)) or call.operation, own["site"])

    sides: dict[Request, list[int]] = {}
    for rank, it in members.items():
        sides.setdefault(side(calls[rank]) if rank in calls else _absence(it), []).append(rank)
    site = common.pop("site")
    where = " ".join(filter(None, common.values()))
    headline = f"{code} in {where} on {group}" if where else f"{code} on {group}"
    headline = f"{headline} at {site}" if site else headline
    text = with_sides(f"{headline}: {summary}" if summary else headline, sides)
    remedy = _remedy(list(calls.values())) if code == "MISMATCH" else ""
    return f"{text}\n  {remedy}" if remedy else text


def absences(members: Mapping[int, Member]) -> dict[Request, list[int]]:
    """A line for each different thing that missing members, by rank in the gang, do instead."""
    sides: dict[Request, list[int]] = {}
    for rank, it in members.items():
        sides.setdefault(_absence(it), []).append(rank)
    return sides


def _absence(member: Member) -> Request:
    return Request("has not come" if member.activity is None else f"has not come: {member.activity}")


def _remedy(calls: Sequence[_Call]) -> str:
    """What may help against a mismatch; empty: nothing is known."""
    if len({call.operation_id for call in calls} - {""}) > 1:
        return "calls that began apart have met: gang calls have one order, whoever makes them"
    besides_shapes = {(call.operation, re.sub(r"\[[^\]]*\]", "", call.terms, count=1)) for call in calls}
    return _UNEQUAL.get(calls[0].operation, "") if len(besides_shapes) == 1 else ""


def with_sides(headline: str, sides: Mapping[Request, Sequence[int]]) -> str:
    """A headline, and a line for each side, with the ranks in the gang that asked for it."""
    labels = [f"{rank_intervals(ranks)}:" for ranks in sides.values()][:MOST_SHOWN]
    width = max(map(len, labels), default=0)
    lines = [f"{label:<{width}} {side}" for label, side in zip(labels, sides, strict=False)]
    if len(sides) > MOST_SHOWN:
        lines.append(f"and {len(sides) - MOST_SHOWN} more sides")
    return "\n  ".join([headline, *lines])


def _only(values: Iterable[str]) -> str:
    """The one value among those that are not empty; empty if they differ."""
    named = set(filter(None, values))
    return named.pop() if len(named) == 1 else ""
