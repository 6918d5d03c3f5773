"""Processes of ranks that are new, and what they hold from then on."""

from __future__ import annotations

import time
import uuid
from collections.abc import Collection
from contextlib import ExitStack

import numpy as np
from tests.chaos.controllers.controller import Controller
from tests.chaos.controllers.python import PythonController
from tests.chaos.operations import Values
from tests.chaos.pending import fill_queue, wait_pending
from tests.chaos.scene import CALL_TIMEOUT_S, PATIENCE_S, SHORT_TIMEOUT_S, Scene

from rankbridge.harness.usage import SETTLE_S, Usage, settled, usage

_KEPT_ELEMENTS = 16 * 1024
# Threads that a rank's server makes before it reuses them: more than all calls of a round hold at once, also where a
# busy machine lets calls that were cancelled wait for their ends beside those that come next.
_WATCHES = 32
# A thread or descriptor of gRPC or of the interpreter that comes with some first use, and stays.
SLACK = 1
# Segments of one controller: those that it keeps, those that the rank keeps for it, and those of a round's calls.
_SEGMENTS = 12
# Of so many bytes on, a rank copies with a second thread, which stays.
_LARGE_BYTES = 8 << 20


def kept(rank: int) -> Values:
    """The tensor that a rank keeps as long as its process lives."""
    return np.arange(_KEPT_ELEMENTS, dtype=np.int32) * (rank + 1)


def welcome(scene: Scene, ranks: Collection[int]) -> None:
    """Gives new processes a tensor to keep, makes them use all they ever will, and notes what they hold.

    All controllers are connected to them by then, and the gang is whole.
    """
    if ranks:
        for it in scene.controllers.values():
            _open_streams(scene, it)
    for rank in ranks:
        pid = scene.pids[rank] = scene.gang[rank].status().pid
        scene.kept[rank] = scene.gang[rank].put(kept(rank))
        _warm_up(scene, rank)
        scene.baseline[pid] = usage(pid)


def count_leaks(scene: Scene, seconds: float = SETTLE_S) -> dict[int, tuple[Usage, Usage]]:
    """Finds what the present processes hold too much: more than when they were new, or too many segments.

    Args:
        scene: The gang.
        seconds: That they have, all together, to let go of it.

    Returns:
        What each held then and holds now, by pid.
    """
    pairs: dict[int, tuple[Usage, Usage]] = {}
    deadline = time.monotonic() + seconds
    segments = _SEGMENTS * len(scene.controllers)
    for rank, pid in enumerate(scene.pids):
        then = scene.baseline[pid]
        most = Usage(then.threads + SLACK, then.fds + SLACK, 0, segments)
        now = settled(pid, most, deadline - time.monotonic())
        pairs[pid] = then, now
        for what, allowed, held in (
            ("threads", most.threads, now.threads),
            ("file descriptors", most.fds, now.fds),
            ("segments of shared memory", most.segments, now.segments),
        ):
            if held > allowed:
                scene.findings.leak(
                    f"rank {rank} of {scene.size} may hold {allowed} {what}, and holds {held}"
                )
    return pairs


def _open_streams(scene: Scene, controller: Controller) -> None:
    """Has a client call in each way for which it keeps streams: all members of a group, and each rank's own part."""
    for group, members in scene.groups.items():
        controller.call_all("barrier", None, group=group, ranks=members, timeout=CALL_TIMEOUT_S)
    operation_id = uuid.uuid4().hex
    parts = [
        controller.start(
            rank, "barrier", None, {}, group="world", operation_id=operation_id, timeout=CALL_TIMEOUT_S
        )
        for rank in range(scene.size)
    ]
    for part in parts:
        outcome = part.outcome(CALL_TIMEOUT_S + PATIENCE_S)
        if outcome.error is not None:
            raise outcome.error


def _warm_up(scene: Scene, rank: int) -> None:
    large = scene.gang[rank].put(np.zeros(_LARGE_BYTES, np.uint8))
    scene.gang[rank].get(large)
    scene.gang.release(large)
    operation_id = uuid.uuid4().hex
    pending = fill_queue(scene, PythonController(scene.gang), rank, operation_id)
    scene.gang[rank].poll(operation_id)
    scene.gang[rank].start("await_operation", operation_id, timeout=SHORT_TIMEOUT_S).cancel()
    for it in pending:
        it.cancel()
    wait_pending(scene, rank, 0)
    with ExitStack() as stack:
        # Each holds a thread of the server from its first answer on, for which this waits.
        for _ in range(_WATCHES):
            stack.enter_context(scene.gang[rank].events())
