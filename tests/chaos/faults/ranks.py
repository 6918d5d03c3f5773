"""What happens to ranks, and between them."""

from __future__ import annotations

import os
import signal
import time
from contextlib import suppress
from dataclasses import replace
from random import Random
from typing import Self

from tests.chaos.checks import TRANSPORT, Allowed
from tests.chaos.faults.fault import LONGEST_DELAY_S, LOST, Fault
from tests.chaos.operations import Operation
from tests.chaos.scene import Begun, Scene
from tests.chaos.wholeness import is_whole, make_whole

from rankbridge import ErrorCode
from rankbridge.harness.connections import NotPermittedError, close_link


class Kill(Fault):
    """A rank's process is killed."""

    kind = "kill -9"

    def happen(self, scene: Scene, operation: Operation, group: str) -> None:
        """The others have PEER_LOST, and a new process takes the rank's place."""
        begun = self.begin(scene, operation, group)
        struck = time.monotonic()
        os.kill(scene.pids[self.victim], signal.SIGKILL)
        allowed = self.lost(scene, group, own=Allowed(TRANSPORT))
        outcomes = scene.collect(begun, struck, gone={self.victim})
        make_whole(scene, struck, self.survivor(scene), replaced={self.victim})
        scene.judge(begun, outcomes, allowed, gone={self.victim})


class Stop(Fault):
    """A rank's process is stopped until the others have given it up, then goes on."""

    kind = "SIGSTOP"

    def happen(self, scene: Scene, operation: Operation, group: str) -> None:
        """The others have PEER_LOST by its missing heartbeat; it is replaced, or comes back for the next generation."""
        pid = scene.pids[self.victim]
        if self.victim not in scene.groups[group]:
            # Nobody would wait for it, and notice.
            operation, group = replace(operation, kind="all_reduce", options={"op": "sum"}), "world"
        # One that is not called has nothing to answer while it is stopped.
        it = replace(self, absent=True)
        begun = it.begin(scene, operation, group)
        struck = time.monotonic()
        os.kill(pid, signal.SIGSTOP)
        allowed = it.lost(scene, group, own=Allowed(frozenset()))
        try:
            outcomes = scene.collect(begun, struck)
        finally:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)
        make_whole(scene, struck, self.survivor(scene), replaced={self.victim})
        scene.judge(begun, outcomes, allowed, gone={self.victim})


class Blink(Fault):
    """A rank's process is stopped for less time than others wait for its heartbeat."""

    kind = "SIGSTOP, SIGCONT"
    LONGEST_S = 0.25

    def happen(self, scene: Scene, operation: Operation, group: str) -> None:
        """Nobody notices, as a rule; if the machine is so busy that somebody does, the rank is named."""
        begun = replace(self, absent=False).begin(scene, operation, group)
        struck = time.monotonic()
        os.kill(scene.pids[self.victim], signal.SIGSTOP)
        time.sleep(self.LONGEST_S * self.delay / LONGEST_DELAY_S)
        os.kill(scene.pids[self.victim], signal.SIGCONT)
        allowed = replace(self, absent=False).lost(scene, group, own=Allowed(LOST))
        outcomes = scene.collect(begun, struck)
        if all(error is None for error, _ in outcomes.values()):
            is_whole(scene, struck)
        else:
            make_whole(scene, struck, self.survivor(scene))
        scene.judge(begun, outcomes, allowed)


class CloseLink(Fault):
    """The control link between a rank and the sidecar of rank 0 is closed."""

    kind = "closed link"

    @classmethod
    def draw(cls, random: Random, size: int) -> Self:
        """A random link."""
        it = super().draw(random, size)
        return replace(it, victim=1 + it.victim % (size - 1))

    def happen(self, scene: Scene, operation: Operation, group: str) -> None:
        """Everybody has PEER_LOST, naming an end of the link; all processes stay."""
        begun = self.begin(scene, operation, group)
        struck = time.monotonic()
        joined = not (self.absent and self.victim in scene.groups[group])
        everybody = Allowed(LOST, frozenset({0, self.victim}), success=joined)
        try:
            close_link(scene.pids[self.victim], 0)
        except NotPermittedError as error:
            scene.findings.unavailable[self.kind] = str(error)
            _call_off(scene, begun)
            return
        outcomes = scene.collect(begun, struck)
        make_whole(scene, struck, self.survivor(scene))
        scene.judge(begun, outcomes, dict.fromkeys(range(scene.size), everybody))


def _call_off(scene: Scene, begun: Begun) -> None:
    for pending in begun.pending.values():
        pending.cancel()
    codes = frozenset({ErrorCode.CANCELLED, ErrorCode.UNKNOWN_OPERATION})
    outcomes = scene.collect(begun, time.monotonic())
    scene.judge(begun, outcomes, dict.fromkeys(begun.pending, Allowed(codes)))
