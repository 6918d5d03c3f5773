"""What torch's tools need inside a rank. Without the settings, nothing is done."""

from __future__ import annotations

import json
import os
from datetime import timedelta
from pathlib import Path
from typing import Any

import torch.distributed as dist

TIMEOUT = "DIAGNOSE_TIMEOUT"
"""Seconds after which torch gives up a collective."""
BARRIER = "DIAGNOSE_MONITORED_BARRIER"
"""Whether a monitored_barrier comes before each step's collectives."""
SERVER = "DIAGNOSE_WORKER_SERVER"
"""Whether each rank has torch's worker server, which gives the flight recorder."""

_kept: list[Any] = []


def timeout() -> timedelta | None:
    """Of groups. None: torch's own."""
    return timedelta(seconds=float(os.environ[TIMEOUT])) if TIMEOUT in os.environ else None


def socket(folder: Path, rank: int) -> Path:
    """Of a rank's worker server."""
    return folder / f"worker-{rank}"


def groups(folder: Path, rank: int) -> Path:
    """Where a rank describes its groups, which Gloo's record does not."""
    return folder / f"groups-{rank}"


def prepare(folder: Path, rank: int) -> None:
    """Starts the server."""
    if SERVER in os.environ:
        from torch._C._distributed_c10d import _WorkerServer

        _kept.extend([_WorkerServer(str(socket(folder, rank))), groups(folder, rank)])
        describe_groups()


def describe_groups() -> None:
    """Writes all groups that there are."""
    if _kept:
        world = dist.distributed_c10d._world
        known = {
            world.pg_names[it]: {"desc": it.group_desc, "ranks": sorted(world.pg_group_ranks[it])}
            for it in world.pg_map
        }
        part = _kept[1].with_suffix(".part")
        part.write_text(json.dumps(known))
        part.rename(_kept[1])


def before_collectives() -> None:
    """The barrier that names who does not come."""
    if BARRIER in os.environ:
        dist.monitored_barrier(timeout=timeout(), wait_all_ranks=True)
