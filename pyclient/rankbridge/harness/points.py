"""Points inside functions, in words: `third all_reduce of group dp on rank 2`."""

from __future__ import annotations

import re
from dataclasses import dataclass

from rankbridge.harness.kinds import Json, scalar, shown
from rankbridge.harness.problems import nearest

TORCH_CALLS = (
    *("all_reduce", "broadcast", "reduce", "all_gather", "all_gather_into_tensor", "gather", "scatter"),
    *("reduce_scatter", "reduce_scatter_tensor", "all_to_all", "all_to_all_single", "barrier"),
    *("monitored_barrier", "send", "recv", "all_reduce_coalesced", "all_gather_coalesced"),
    *("all_gather_into_tensor_coalesced", "reduce_scatter_tensor_coalesced", "gather_into_tensor"),
)
"""What a function calls of torch.distributed, by the names that `rankbridge watch` gives it."""

_ORDINALS = ("first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth")
_PATTERN = (
    rf"^({'|'.join(_ORDINALS)}|[1-9][0-9]{{0,5}}(?:st|nd|rd|th)) ({'|'.join(TORCH_CALLS)})"
    r"(?: of group (\S{1,100}))?(?: on rank ([0-9]{1,3}))?$"
)


@dataclass(frozen=True, slots=True)
class Point:
    """A collective of a function, before a rank enters it.

    Attributes:
        text: The point in words.
        number: Which of its calls, counted from 1 since the fault was prepared.
        call: Name of the collective.
        group: Name of the group. Empty: calls on all groups count.
        rank: Rank whose calls count. None: those of each rank that the fault hits.
    """

    text: str
    number: int
    call: str
    group: str
    rank: int | None


def point_of(text: str) -> Point | None:
    """Reads a point; None: the text is none."""
    found = re.fullmatch(_PATTERN, text)
    if found is None:
        return None
    ordinal, call, group, rank = found.groups()
    number = _ORDINALS.index(ordinal) + 1 if ordinal in _ORDINALS else int(ordinal[:-2])
    return Point(text, number, call, group or "", None if rank is None else int(rank))


@dataclass(frozen=True)
class PointText:
    """A point in words."""

    def _wrong(self, value: object) -> str:
        if isinstance(value, str) and point_of(value) is not None:
            return ""
        words = str(value).split(" ")
        call = nearest(words[1], TORCH_CALLS) if len(words) > 1 and words[1] not in TORCH_CALLS else ""
        return f"expected {self}, got {shown(value)}{call}"

    check = scalar(_wrong)

    def schema(self) -> Json:
        """As JSON Schema."""
        return {"type": "string", "pattern": _PATTERN}

    def __str__(self) -> str:
        """In words."""
        return 'a collective, as "third all_reduce of group dp on rank 2"'
