"""The controller of a gang: a thread for each rank. Usage: controller.py NAME SEED FOLDER."""

from __future__ import annotations

import sys
import threading
import time
import traceback
from collections.abc import Callable
from pathlib import Path

from tests.diagnose.gang import absences, disagreements, meetings, right
from tests.diagnose.gang.ranks import Rank, make_groups
from tests.diagnose.plan import Plan
from tests.diagnose.stalls import LONG_S, STALLS

import rankbridge


def own_program(name: str, plan: Plan) -> Callable[[Rank], None]:
    """What the name says."""
    if name in STALLS:
        return lambda rank: rank.stall(name, (plan.victim,))
    if name == "two_asleep":
        return lambda rank: rank.stall("asleep", (plan.victim, plan.other))
    modules = (absences, disagreements, meetings, right)
    found: Callable[[Rank], None] = next(vars(it)[name] for it in modules if name in vars(it))
    return found


def run(program: Callable[[Rank], None], rank: Rank) -> None:
    """A script that fails ends, and says why."""
    try:
        program(rank)
    except Exception:
        traceback.print_exc()


def main() -> None:
    """Drives the gang until the process is ended."""
    name, seed, folder = sys.argv[1], int(sys.argv[2]), Path(sys.argv[3])
    plan = Plan.drawn(name, seed)
    with rankbridge.connect(str(folder / "endpoints.json"), timeout=600.0) as gang:
        make_groups(gang)
        program = own_program(name, plan)
        for number in range(len(gang)):
            rank = Rank(gang, number, plan, folder)
            threading.Thread(target=run, args=[program, rank], daemon=True).start()
        time.sleep(LONG_S)


if __name__ == "__main__":
    main()
