"""A verdict as the page shows it."""

from __future__ import annotations

from typing import Any

from rankbridge.errors import intervals

from ...core.printable import lines, printable
from ...doctor.page import page
from ...doctor.verdict import Kind, Verdict
from ...doctor.words import joined

_MOST = 16


def as_shown(it: Verdict, at: float) -> dict[str, Any]:
    """The verdict as plain values. `at`: when it was found, in seconds since 1970."""
    return {
        "at": at,
        "kind": it.kind.value,
        "calm": it.kind is Kind.HEALTHY,
        "summary": printable(it.summary),
        "confidence": it.confidence,
        "culprits": [
            {
                "rank": one.rank,
                "condition": one.condition.value,
                "why": printable(one.why),
                "process": f"pid {one.pid} on {printable(one.host)}" if one.pid else "",
                "place": printable(joined(one.stack)),
            }
            for one in it.culprits[:_MOST]
        ],
        "sides": [
            {
                "ranks": intervals(one.ranks),
                "what": printable(one.what),
                "sites": printable(joined(one.sites)),
            }
            for one in it.sides[:_MOST]
        ],
        "advice": printable(it.advice),
        "page": lines(page(it)),
    }
