"""Processes of ranks that are new, and what they hold from then on."""

from __future__ import annotations

import uuid
from collections.abc import Collection
from typing import Any

import numpy as np
from tests.chaos.controllers.python import PythonController
from tests.chaos.operations import Values
from tests.chaos.pending import fill_queue, wait_pending
from tests.chaos.scene import SHORT_TIMEOUT_S, Scene
from tests.chaos.usage import SETTLE_S, Usage, settled, usage

from rankbridge import Pending

_KEPT_ELEMENTS = 16 * 1024
# Threads that a rank's server makes before it reuses them: more than all calls of a round hold at once.
_AWAITS = 12
# A thread or descriptor of gRPC or of the interpreter that comes with some first use, and stays.
SLACK = 1


def kept(rank: int) -> Values:
    """The tensor that a rank keeps as long as its process lives."""
    return np.arange(_KEPT_ELEMENTS, dtype=np.int32) * (rank + 1)


def welcome(scene: Scene, ranks: Collection[int]) -> None:
    """Gives new processes a tensor to keep, makes them use all they ever will, and notes what they hold.

    All controllers are connected to them by then, and the gang is whole.
    """
    if ranks:
        # The client keeps a stream to each rank from the first call of all of them on.
        scene.gang.barrier()
    for rank in ranks:
        pid = scene.pids[rank] = scene.gang[rank].status().pid
        scene.kept[rank] = scene.gang[rank].put(kept(rank))
        _warm_up(scene, rank)
        scene.baseline[pid] = usage(pid)


def count_leaks(scene: Scene, seconds: float = SETTLE_S) -> dict[int, tuple[Usage, Usage]]:
    """Finds what the present processes hold more than when they were new, after `seconds` at the latest.

    Returns:
        What each held then and holds now, by pid.
    """
    pairs: dict[int, tuple[Usage, Usage]] = {}
    for rank, pid in enumerate(scene.pids):
        then = scene.baseline[pid]
        now = settled(pid, then, seconds)
        pairs[pid] = then, now
        for what, before, after in (
            ("threads", then.threads, now.threads),
            ("file descriptors", then.fds, now.fds),
        ):
            if after > before + SLACK:
                scene.findings.leak(f"rank {rank} of {scene.size} had {before} {what}, and has {after}")
    return pairs


def _warm_up(scene: Scene, rank: int) -> None:
    operation_id = uuid.uuid4().hex
    pending = fill_queue(scene, PythonController(scene.gang), rank, operation_id)
    scene.gang[rank].poll(operation_id)
    waiting = [_start_await(scene, rank, operation_id) for _ in range(1 + _AWAITS)]
    for it in [*waiting, *pending]:
        it.cancel()
    wait_pending(scene, rank, 0)


def _start_await(scene: Scene, rank: int, operation_id: str) -> Pending[Any]:
    return scene.gang[rank].start("await_operation", operation_id, timeout=SHORT_TIMEOUT_S)
