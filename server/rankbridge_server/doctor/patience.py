"""How long a pause must last before it is called a hang: longer than this job has paused before."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from .evidence import Call, Evidence, RankEvidence

PATIENCE_S = 2.0
_TIMES_LONGEST = 2.0
"""As many times the rank's longest pause so far."""
_FEW = 3
BEGINNING = 2.5
"""As many times the patience while a rank has called too little to know its pauses: jobs begin slowly."""


def patience(evidence: Evidence, late: RankEvidence | None, base_s: float) -> float:
    """Seconds that others wait for this rank before that is worth a word."""
    if late is None or late.is_gone or late.is_stopped:
        return base_s
    timed = [it for it in late.calls if it.called_at is not None]
    if len(timed) < _FEW:
        return max(base_s * BEGINNING, _TIMES_LONGEST * late.late_s)
    if late.source == "record":
        return longer(base_s, [late.late_s] * _FEW)
    return longer(base_s, [_pause(earlier, later) for earlier, later in pairwise(timed)])


def _pause(earlier: Call, later: Call) -> float:
    """Seconds between two calls. Those in which a call on a device made its communicator are none of them."""
    begun = earlier.called_at or 0.0
    if earlier.on_device and earlier.returned_at is not None:
        begun = max(begun, earlier.returned_at)
    return max(0.0, (later.called_at or 0.0) - begun)


def longer(base_s: float, pauses: Sequence[float]) -> float:
    """Seconds that are longer than what was usual before."""
    few = base_s * BEGINNING if len(pauses) < _FEW - 1 else base_s
    return max(few, _TIMES_LONGEST * max(pauses, default=0.0))
