"""Calls that disagree, do not come, or are taken back."""

from __future__ import annotations

import time
from dataclasses import replace

from tests.chaos.checks import Allowed
from tests.chaos.faults.fault import Fault
from tests.chaos.operations import Operation
from tests.chaos.scene import SHORT_TIMEOUT_S, Scene
from tests.chaos.wholeness import finish

from rankbridge import ErrorCode


class Mismatch(Fault):
    """A member asks for something else."""

    kind = "mismatch"

    def happen(self, scene: Scene, operation: Operation, group: str) -> None:
        """All members have MISMATCH, with the other side named, and nothing was done."""
        odd = self.member(scene, group)
        another = replace(operation, elements=operation.elements + 1)
        begun = scene.begin(operation, group, other={odd: another})
        struck = time.monotonic()
        members = frozenset(scene.groups[group])
        mismatch = frozenset({ErrorCode.MISMATCH})
        allowed = {
            rank: Allowed(mismatch, members - {odd} if rank == odd else frozenset({odd}), False, True)
            for rank in members
        }
        finish(scene, begun, allowed, struck)


class Missing(Fault):
    """A member is not called at all."""

    kind = "missing caller"

    def happen(self, scene: Scene, operation: Operation, group: str) -> None:
        """Those who came have PEER_MISSING, and the missing one is named."""
        missing = self.member(scene, group)
        begun = scene.begin(operation, group, absent={missing}, timeout=SHORT_TIMEOUT_S)
        struck = time.monotonic()
        rule = Allowed(frozenset({ErrorCode.PEER_MISSING}), frozenset({missing}), False, True)
        finish(scene, begun, dict.fromkeys(scene.groups[group], rule), struck)


class Cancel(Fault):
    """The caller hangs up on all ranks."""

    kind = "cancelled call"

    def happen(self, scene: Scene, operation: Operation, group: str) -> None:
        """It was done on all ranks or on none, and each of them knows."""
        it = replace(self, victim=self.member(scene, group))
        begun = it.begin(scene, operation, group)
        struck = time.monotonic()
        for pending in begun.pending.values():
            pending.cancel()
        # One that was hung up on before it had heard the call has never heard of it.
        codes = frozenset({ErrorCode.CANCELLED, ErrorCode.UNKNOWN_OPERATION})
        rule = Allowed(codes, success=not self.absent, definite=True)
        finish(scene, begun, dict.fromkeys(scene.groups[group], rule), struck)
