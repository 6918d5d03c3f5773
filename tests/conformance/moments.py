"""What one rank answered in one step of a case, beside what was recorded of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

Answer: TypeAlias = dict[str, Any]
"""`{"ok": value}`, `{"error": {"type": ..., "message": ...}}` (recorded) or `{"error": {"code": ..., "message": ...}}`
(the bridge's), or what else became of a recorded rank: `{"hang": true}`, `{"process_exit": -6}`."""


@dataclass(frozen=True, kw_only=True)
class Moment:
    """One comparison.

    Attributes:
        step: Which step of the case.
        rank: Rank in the gang.
        recorded: What was recorded: one answer, or those of several versions, any of which will do.
        answer: What the bridge answered.
        method: What was called, in the recorded system's word.
        inputs: What the rank was given, for matching.
        arguments: Those of every member of the group, in group order, for computing what is right.
        place: The rank's place in that group.
    """

    step: str
    rank: int
    recorded: Sequence[Answer]
    answer: Answer
    method: str
    inputs: Mapping[str, Any] = field(default_factory=dict)
    arguments: Sequence[Mapping[str, Any]] = ()
    place: int = 0
