"""Limits of a rank that are reached."""

from __future__ import annotations

import time
from dataclasses import replace

from tests.chaos.checks import Allowed
from tests.chaos.faults.fault import Fault
from tests.chaos.operations import Operation
from tests.chaos.pending import fill_queue, wait_pending
from tests.chaos.scene import SHORT_TIMEOUT_S, Scene
from tests.chaos.stage import MAX_SESSION_REFS
from tests.chaos.wholeness import is_whole

from rankbridge import ErrorCode

_FULL = Allowed(frozenset({ErrorCode.RESOURCE_EXHAUSTED}), success=False, definite=True)


class FullSession(Fault):
    """The session has no room for another ref on one rank."""

    kind = "full session"

    def happen(self, scene: Scene, operation: Operation, group: str) -> None:
        """That rank has RESOURCE_EXHAUSTED, and the others of it; with room again, all is well."""
        reduction = replace(operation, kind="all_reduce", options={"op": "sum"})
        full = self.member(scene, group)
        controller = scene.caller(full)
        with controller.session():
            # The operation's own input is the last that there is room for.
            fillers = controller.create(full, MAX_SESSION_REFS - 1)
            # The refusal ends the others' calls at once; on a busy machine it may come late.
            begun = scene.begin(reduction, group)
            struck = time.monotonic()
            refused = Allowed(frozenset({ErrorCode.RESOURCE_EXHAUSTED}), frozenset({full}), False, True)
            outcomes = scene.collect(begun, struck)
            controller.release(fillers)
            is_whole(scene, struck)
            scene.judge(begun, outcomes, dict.fromkeys(scene.groups[group], refused) | {full: _FULL})
            scene.good(reduction, group)


class FullQueue(Fault):
    """One rank holds as many pending calls as it may."""

    kind = "full queue"

    def happen(self, scene: Scene, operation: Operation, group: str) -> None:
        """It has RESOURCE_EXHAUSTED; the others are told that it is missing, or does something else."""
        full = self.member(scene, group)
        others = [rank for rank in scene.groups[group] if rank != full]
        queued = fill_queue(scene, scene.caller(full), full, "")
        # Alone: what the others ask for would end the first of those that are queued, and make room.
        alone = scene.begin(operation, group, absent=others)
        struck = time.monotonic()
        refused = scene.collect(alone, struck)
        begun = scene.begin(operation, group, absent={full}, timeout=SHORT_TIMEOUT_S)
        outcomes = scene.collect(begun, struck)
        codes = frozenset({ErrorCode.PEER_MISSING, ErrorCode.MISMATCH})
        rule = Allowed(codes, frozenset({full}), success=False, definite=True)
        for it in queued:
            it.cancel()
        wait_pending(scene, full, 0)
        is_whole(scene, struck)
        scene.judge(alone, refused, {full: _FULL})
        scene.judge(begun, outcomes, dict.fromkeys(others, rule))
