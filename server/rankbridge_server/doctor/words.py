"""How calls, groups and ranks are named in verdicts."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ..core.rank_intervals import rank_intervals
from ..core.torch_group_names import shown_name
from .evidence import Call, Evidence, Frame, Group, RankEvidence

_MOST_NAME = 12
__all__ = ["called", "group_name", "joined", "numbered", "rank_intervals", "verb"]


def group_name(name: str, evidence: Evidence) -> str:
    """A group's name for people: its description or members; torch's own name too, where that is not clear."""
    for rank in evidence.ranks:
        for group in rank.groups:
            if group.name == name:
                label = _label(group, evidence)
                others = [it for it in rank.groups if it.name != name and _label(it, evidence) == label]
                return f"{label}({name[:_MOST_NAME]})" if others else label
    return name[:_MOST_NAME] or "world"


def _label(group: Group, evidence: Evidence) -> str:
    return shown_name(group.description, group.ranks, evidence.world_size)


def called(call: Call, evidence: Evidence) -> str:
    """A call's name: `all_reduce world#12`."""
    if call.is_p2p:
        peer = f"rank {call.peer}" if call.peer is not None else "any rank"
        tag = f" tag {call.tag}" if call.tag is not None else ""
        number = f" #{call.number}" if evidence.has_numbers else ""
        return f"{call.kind} {'to' if call.is_send else 'from'} {peer}{tag}{number}"
    return f"{call.kind} {numbered(call.group, call.number, evidence)}"


def numbered(group: str, number: int, evidence: Evidence) -> str:
    """A group's name with the number of a collective, where numbers mean something: `world#12`."""
    return group_name(group, evidence) + (f"#{number}" if evidence.has_numbers else "")


def joined(frames: Iterable[Frame]) -> str:
    """A stack on one line, innermost first."""
    return " < ".join(map(str, frames))


def verb(ranks: Sequence[int | RankEvidence], one: str, several: str) -> str:
    """The right form of a verb."""
    return one if len(ranks) == 1 else several
