"""What can be said where nobody's calls are known, only stacks and processes."""

from __future__ import annotations

from .absence import culprit
from .conditions import condition
from .evidence import Evidence
from .stacks import in_collective, in_init, is_hook, site, waits_in_collective
from .verdict import Condition, Kind, Verdict, Wait
from .waits import WaitsFor
from .words import joined

_TIMES = 1.5
"""As many times the patience: how long these ranks paused before is not known."""


def outsider(evidence: Evidence, graph: WaitsFor, patience_s: float) -> Verdict | None:
    """The one rank that is not in a collective while all others have been in one, without moving, for long."""
    if any(it.source for it in evidence.ranks) or len(evidence.ranks) != evidence.world_size:
        return None
    waiting = [it for it in evidence.ranks if waits_in_collective(it) and it.still]
    rest = [it for it in evidence.ranks if it not in waiting]
    if len(rest) != 1 or len(waiting) < 2:
        return None
    late = rest[0]
    blocked = min(it.process.blocked_s or 0.0 for it in waiting)
    what = condition(late, evidence.interval_s)
    down = late.is_gone or late.is_stopped
    asleep = (late.process.blocked_s or 0.0) >= _TIMES * patience_s and bool(late.still)
    unsure = what in (Condition.UNKNOWN, Condition.SPINNING, Condition.STARVED, Condition.IN_COLLECTIVE)
    if blocked < _TIMES * patience_s or not (down or (asleep and not unsure)):
        return None
    found = culprit(late, evidence, 0.7)
    return Verdict(
        kind=Kind.RENDEZVOUS if all(map(in_init, waiting)) else Kind.NEVER_CALLED,
        summary=f"rank {late.rank} is the only one that is in no collective: it is {found.why}"
        + (f", in {joined(found.stack[:3])}" if found.stack else ""),
        confidence=0.7,
        culprits=(found,),
        waits=tuple(
            Wait(
                rank=it.rank,
                call=next(
                    (
                        frame.name
                        for thread in it.threads
                        if (frame := in_collective(thread)) and not is_hook(frame)
                    ),
                    "collective",
                ),
                waits_for=(late.rank,),
                seconds=it.process.blocked_s,
                site=site(it),
            )
            for it in waiting
        ),
        advice="look at the stack of the rank that has not come",
    )
