"""A rank of a job that goes wrong, or does not. Usage, below torchrun: job.py NAME SEED FOLDER."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import torch.distributed as dist
from tests.diagnose import absences, disagreements, meetings, right
from tests.diagnose.plan import marker
from tests.diagnose.ranks import BACKEND, FOLDER, NAME, PLAN, RANK, Job, hit, stall
from tests.diagnose.stalls import LONG_S, STALLS


def own_program(name: str) -> Callable[[Job], None]:
    """What the name says."""
    if name in STALLS:
        return lambda job: stall(job, STALLS[name], (PLAN.victim,))
    if name == "two_asleep":
        return lambda job: stall(job, STALLS["asleep"], (PLAN.victim, PLAN.other))
    if name == "p2p_tag":
        return lambda job: meetings.p2p(job, tag=6)
    if name == "p2p_peer":
        away = next(it for it in range(4) if it not in (PLAN.victim, PLAN.partner))
        return lambda job: meetings.p2p(job, peer=away)
    modules = (absences, disagreements, meetings, right)
    found: Callable[[Job], None] = next(vars(it)[name] for it in modules if name in vars(it))
    return found


def main() -> None:
    """Is one rank."""
    if NAME == "not_begun" and PLAN.victim == RANK:
        hit()
        time.sleep(LONG_S)
    if NAME == "not_begun":
        marker(FOLDER, RANK).touch()
        dist.init_process_group(BACKEND)
        return
    own_program(NAME)(Job())


if __name__ == "__main__":
    main()
