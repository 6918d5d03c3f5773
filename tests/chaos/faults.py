"""Everything that is done to a gang. Each class is one kind of fault, and knows what must come of it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from abc import ABC, abstractmethod
from contextlib import suppress
from dataclasses import dataclass, replace
from random import Random
from typing import ClassVar, Self

from tests.chaos.checks import TRANSPORT, Allowed
from tests.chaos.control_links import NotPermittedError, close_link
from tests.chaos.operations import Operation
from tests.chaos.scene import MAX_SESSION_REFS, SHORT_TIMEOUT_S, Begun, Scene
from tests.chaos.usage import until

from rankbridge import ErrorCode, zeros

_LOST = frozenset({ErrorCode.PEER_LOST, ErrorCode.STALE_GENERATION})
_LONGEST_DELAY_S = 0.02


@dataclass(frozen=True)
class Fault(ABC):
    """One fault that is to happen to one operation.

    `victim`: rank in the gang. `absent`: the victim is not called, so that the others are surely waiting for it.
    `delay`: seconds from the call to the fault.
    """

    kind: ClassVar[str]
    victim: int
    absent: bool
    delay: float

    @classmethod
    def draw(cls, random: Random, size: int) -> Self:
        """A random fault of this kind."""
        return cls(random.randrange(size), random.random() < 0.5, _LONGEST_DELAY_S * random.random())

    @abstractmethod
    def happen(self, scene: Scene, operation: Operation, group: str) -> None:
        """Does it, and judges everything that comes of it."""

    def begin(self, scene: Scene, operation: Operation, group: str) -> Begun:
        """Begins the operation, and waits for the moment of the fault."""
        begun = scene.begin(operation, group, absent={self.victim} if self.absent else ())
        time.sleep(self.delay)
        return begun

    def survivor(self, scene: Scene) -> int:
        """A rank that the fault leaves."""
        return next(rank for rank in range(scene.size) if rank != self.victim)

    def lost(self, scene: Scene, group: str, *, own: Allowed) -> dict[int, Allowed]:
        """What calls may come to when the victim is lost: its own, and the others'."""
        joined = not (self.absent and self.victim in scene.groups[group])
        others = Allowed(_LOST, frozenset({self.victim}), success=joined)
        return dict.fromkeys(range(scene.size), others) | {self.victim: own}


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
        scene.make_whole(struck, self.survivor(scene), replaced={self.victim})
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
        scene.make_whole(struck, self.survivor(scene), replaced={self.victim})
        scene.judge(begun, outcomes, allowed, gone={self.victim})


class Blink(Fault):
    """A rank's process is stopped for less time than others wait for its heartbeat."""

    kind = "SIGSTOP, SIGCONT"
    _LONGEST_S = 0.25

    def happen(self, scene: Scene, operation: Operation, group: str) -> None:
        """Nobody notices, as a rule; if the machine is so busy that somebody does, the rank is named."""
        begun = replace(self, absent=False).begin(scene, operation, group)
        struck = time.monotonic()
        os.kill(scene.pids[self.victim], signal.SIGSTOP)
        time.sleep(self._LONGEST_S * self.delay / _LONGEST_DELAY_S)
        os.kill(scene.pids[self.victim], signal.SIGCONT)
        allowed = replace(self, absent=False).lost(scene, group, own=Allowed(_LOST))
        outcomes = scene.collect(begun, struck)
        if all(error is None for error, _ in outcomes.values()):
            scene.is_whole(struck)
        else:
            scene.make_whole(struck, self.survivor(scene))
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
        everybody = Allowed(_LOST, frozenset({0, self.victim}), success=joined)
        try:
            close_link(scene.pids[self.victim], 0)
        except NotPermittedError as error:
            scene.findings.unavailable[self.kind] = str(error)
            _call_off(scene, begun)
            return
        outcomes = scene.collect(begun, struck)
        scene.make_whole(struck, self.survivor(scene))
        scene.judge(begun, outcomes, dict.fromkeys(range(scene.size), everybody))


class Mismatch(Fault):
    """A member asks for something else."""

    kind = "mismatch"

    def happen(self, scene: Scene, operation: Operation, group: str) -> None:
        """All members have MISMATCH, with the other side named, and nothing was done."""
        odd = self._odd(scene, group)
        another = replace(operation, elements=operation.elements + 1)
        begun = scene.begin(operation, group, other={odd: another})
        struck = time.monotonic()
        members = frozenset(scene.groups[group])
        mismatch = frozenset({ErrorCode.MISMATCH})
        allowed = {
            rank: Allowed(mismatch, members - {odd} if rank == odd else frozenset({odd}), False, True)
            for rank in members
        }
        scene.finish(begun, allowed, struck)
        scene.is_whole(struck)

    def _odd(self, scene: Scene, group: str) -> int:
        members = scene.groups[group]
        return members[self.victim % len(members)]


class Missing(Fault):
    """A member is not called at all."""

    kind = "missing caller"

    def happen(self, scene: Scene, operation: Operation, group: str) -> None:
        """Those who came have PEER_MISSING, and the missing one is named."""
        members = scene.groups[group]
        missing = members[self.victim % len(members)]
        begun = scene.begin(operation, group, absent={missing}, timeout=SHORT_TIMEOUT_S)
        struck = time.monotonic()
        rule = Allowed(frozenset({ErrorCode.PEER_MISSING}), frozenset({missing}), False, True)
        scene.finish(begun, dict.fromkeys(members, rule), struck)
        scene.is_whole(struck)


class Cancel(Fault):
    """The caller hangs up on all ranks."""

    kind = "cancelled call"

    def happen(self, scene: Scene, operation: Operation, group: str) -> None:
        """It was done on all ranks or on none, and each of them knows."""
        members = scene.groups[group]
        it = replace(self, victim=members[self.victim % len(members)])
        begun = it.begin(scene, operation, group)
        struck = time.monotonic()
        for pending in begun.pending.values():
            pending.cancel()
        # One that was hung up on before it had heard the call has never heard of it.
        codes = frozenset({ErrorCode.CANCELLED, ErrorCode.UNKNOWN_OPERATION})
        rule = Allowed(codes, success=not self.absent, definite=True)
        scene.finish(begun, dict.fromkeys(members, rule), struck)
        scene.is_whole(struck)


class DeadController(Fault):
    """Another controller is killed, while it holds refs and has a call in flight on one rank."""

    kind = "dead controller"
    _LEASE_S = 1.0

    def happen(self, scene: Scene, operation: Operation, group: str) -> None:
        """Its call gets in the way of one operation at most, and its session is gone after its lease."""
        arguments = [str(self.victim), str(self._LEASE_S), *scene.gang.targets]
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
        struck = time.monotonic()
        rule = Allowed(frozenset({ErrorCode.MISMATCH}), frozenset({self.victim}), definite=True)
        begun = scene.begin(operation, group)
        scene.finish(begun, dict.fromkeys(scene.groups[group], rule), struck)

        def gone() -> bool:
            sessions = [it.session_id for status in scene.gang.status() for it in status.sessions]
            return session_id not in sessions

        if not until(gone, 3 * self._LEASE_S + 2.0):
            scene.findings.wrong_error(f"the session of the dead controller lives: {session_id}")
        scene.is_whole(struck)


class FullSession(Fault):
    """The session has no room for another ref on one rank."""

    kind = "full session"

    def happen(self, scene: Scene, operation: Operation, group: str) -> None:
        """That rank has RESOURCE_EXHAUSTED, the others PEER_MISSING; with room again, all is well."""
        reduction = replace(operation, kind="all_reduce", options={"op": "sum"})
        members = scene.groups[group]
        full = members[self.victim % len(members)]
        with scene.gang.session():
            # The operation's own input is the last that there is room for.
            fillers = [scene.gang[full].create("uint8", 1, init=zeros()) for _ in range(MAX_SESSION_REFS - 1)]
            begun = scene.begin(reduction, group, timeout=SHORT_TIMEOUT_S)
            struck = time.monotonic()
            missing = Allowed(frozenset({ErrorCode.PEER_MISSING}), frozenset({full}), False, True)
            own = Allowed(frozenset({ErrorCode.RESOURCE_EXHAUSTED}), success=False, definite=True)
            scene.finish(begun, dict.fromkeys(members, missing) | {full: own}, struck)
            scene.gang.release(fillers)
            scene.good(reduction, group)
        scene.is_whole(struck)


class FullQueue(Fault):
    """One rank holds as many pending calls as it may."""

    kind = "full queue"

    def happen(self, scene: Scene, operation: Operation, group: str) -> None:
        """It has RESOURCE_EXHAUSTED; the others are told that it is missing, or does something else."""
        members = scene.groups[group]
        full = members[self.victim % len(members)]
        others = [rank for rank in members if rank != full]
        queued = scene.fill_queue(full, "")
        # Alone: what the others ask for would end the first of those that are queued, and make room.
        begun = scene.begin(operation, group, absent=others)
        own = Allowed(frozenset({ErrorCode.RESOURCE_EXHAUSTED}), success=False, definite=True)
        struck = time.monotonic()
        scene.finish(begun, {full: own}, struck)
        begun = scene.begin(operation, group, absent={full}, timeout=SHORT_TIMEOUT_S)
        codes = frozenset({ErrorCode.PEER_MISSING, ErrorCode.MISMATCH})
        rule = Allowed(codes, frozenset({full}), success=False, definite=True)
        scene.finish(begun, dict.fromkeys(others, rule), struck)
        for it in queued:
            it.cancel()
        scene.wait_pending(full, 0)
        scene.is_whole(struck)


def _call_off(scene: Scene, begun: Begun) -> None:
    for pending in begun.pending.values():
        pending.cancel()
    codes = frozenset({ErrorCode.CANCELLED, ErrorCode.UNKNOWN_OPERATION})
    scene.finish(begun, dict.fromkeys(begun.pending, Allowed(codes)), time.monotonic())


FAULTS: tuple[type[Fault], ...] = (
    Kill,
    Stop,
    Blink,
    CloseLink,
    Mismatch,
    Missing,
    Cancel,
    DeadController,
    FullSession,
    FullQueue,
)
"""Every kind."""
