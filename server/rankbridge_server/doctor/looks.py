"""A process, as two looks at it show it."""

from __future__ import annotations

from ..core.processes import Look
from .evidence import Process


def between(first: Look, second: Look) -> Process:
    """A process as two looks show it."""
    return Process(
        state=second.state,
        wchan=second.wchan,
        syscall=second.syscall,
        cpu_s=round(second.cpu_s - first.cpu_s, 3),
        run_delay_s=_less(second.run_delay_s, first.run_delay_s),
        switches=None
        if second.switches is None or first.switches is None
        else second.switches - first.switches,
        blocked_s=second.blocked_s,
        children=second.children,
    )


def _less(later: float | None, earlier: float | None) -> float | None:
    return None if later is None or earlier is None else round(later - earlier, 3)
