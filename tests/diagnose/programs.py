"""Which programs run in which variant."""

from __future__ import annotations

from tests.diagnose import faults
from tests.diagnose.faults import Program
from tests.diagnose.gang import programs as of_gangs
from tests.diagnose.variants import Variant


def programs(variant: Variant) -> dict[str, Program]:
    """Those that run so, by name, with what is right to say of them there."""
    if variant is Variant.GANG:
        return of_gangs.PROGRAMS
    recorded = Variant.WATCHED if variant is Variant.GUARDED else variant
    return {name: it for name, it in faults.PROGRAMS.items() if recorded in it.variants}
