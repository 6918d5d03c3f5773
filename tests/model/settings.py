"""How many schedules are tried: `RANKBRIDGE_MODEL=thorough` tries many more.

A failing schedule is printed step by step, and kept in Hypothesis's database, from where it is tried first.
"""

from __future__ import annotations

import os

from hypothesis import HealthCheck, settings

THOROUGH = os.environ.get("RANKBRIDGE_MODEL") == "thorough"

GANG = settings(
    max_examples=10_000 if THOROUGH else 100,
    stateful_step_count=40,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
PURE = settings(max_examples=20_000 if THOROUGH else 600, stateful_step_count=25, deadline=None)
