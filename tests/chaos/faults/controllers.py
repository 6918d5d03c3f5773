"""What happens to other controllers of the same gang."""

from __future__ import annotations

import subprocess
import sys
import time

import numpy as np
from tests.chaos.checks import Allowed
from tests.chaos.controllers.elixir import ElixirController
from tests.chaos.faults.fault import Fault
from tests.chaos.operations import Operation
from tests.chaos.pending import wait_pending
from tests.chaos.scene import Scene
from tests.chaos.wholeness import is_whole

from rankbridge import ErrorCode
from rankbridge.harness.usage import until

# A controller on a busy machine must come to renew it, until it is killed.
_LEASE_S = 3.0
# For a session's end after its lease, on a busy machine.
_GONE_S = 30.0
_LONG_S = 60.0


class DeadController(Fault):
    """Another controller is killed, while it holds refs and has a call in flight on one rank."""

    kind = "dead controller"

    def happen(self, scene: Scene, operation: Operation, group: str) -> None:
        """Its call gets in the way of one operation at most, and its session is gone after its lease."""
        controller = scene.caller(self.victim)
        if isinstance(controller, ElixirController):
            session_id = _kill_elixir(scene, controller, self.victim)
        else:
            session_id = _kill_python(scene, self.victim)
        struck = time.monotonic()
        rule = Allowed(frozenset({ErrorCode.MISMATCH}), frozenset({self.victim}), definite=True)
        begun = scene.begin(operation, group)
        outcomes = scene.collect(begun, struck)

        def gone() -> bool:
            sessions = [it.session_id for status in scene.gang.status() for it in status.sessions]
            return session_id not in sessions

        if not until(gone, _LEASE_S + _GONE_S):
            scene.findings.wrong_error(f"the session of the dead controller lives: {session_id}")
        is_whole(scene, struck)
        scene.judge(begun, outcomes, dict.fromkeys(scene.groups[group], rule))


def _kill_python(scene: Scene, rank: int) -> str:
    arguments = [str(rank), str(_LEASE_S), *scene.gang.targets]
    with subprocess.Popen(
        [sys.executable, "-m", "tests.chaos.doomed", *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as doomed:
        assert doomed.stdout is not None
        session_id = doomed.stdout.readline().strip()
        assert session_id, "the other controller did not begin"
        doomed.kill()
    return session_id


def _kill_elixir(scene: Scene, controller: ElixirController, rank: int) -> str:
    with controller.process.another() as process:
        doomed = controller.other(process, _LEASE_S)
        doomed.put(dict.fromkeys(range(scene.size), np.ones(1000, np.float32)))
        doomed.start(rank, "barrier", None, {}, group="world", operation_id="", timeout=_LONG_S)
        wait_pending(scene, rank, 1)
        process.kill()
    return doomed.session_id
