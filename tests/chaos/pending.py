"""Making a rank hold as many pending calls as it may, and looking at how many it holds."""

from __future__ import annotations

import time

from tests.chaos.controllers.controller import Controller, Flight
from tests.chaos.scene import CALL_TIMEOUT_S, Scene

MAX_PENDING = 16


class GangBrokenError(Exception):
    """The gang is not as it must be, and does not become so in time; nothing more can be tried on it."""


def fill_queue(scene: Scene, controller: Controller, rank: int, operation_id: str) -> list[Flight]:
    """Makes a rank hold as many pending operations as it may; the first has the id."""
    ids = [operation_id] + [""] * (MAX_PENDING - 1)
    pending = [
        controller.start(rank, "barrier", None, {}, group="world", operation_id=it, timeout=CALL_TIMEOUT_S)
        for it in ids
    ]
    wait_pending(scene, rank, MAX_PENDING)
    return pending


def wait_pending(scene: Scene, rank: int, number: int) -> None:
    """Waits until a rank has so many pending operations. Raises GangBrokenError."""
    deadline = time.monotonic() + CALL_TIMEOUT_S
    while (found := scene.gang[rank].status().pending_operations) != number:
        if time.monotonic() > deadline:
            raise GangBrokenError(f"rank {rank} has {found} pending operations, not {number}")
