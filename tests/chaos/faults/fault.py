"""What every fault is."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from dataclasses import dataclass
from random import Random
from typing import ClassVar, Self

from tests.chaos.checks import Allowed
from tests.chaos.operations import Operation
from tests.chaos.scene import Begun, Scene

from rankbridge import ErrorCode

LOST = frozenset({ErrorCode.PEER_LOST, ErrorCode.STALE_GENERATION})
LONGEST_DELAY_S = 0.02


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
        return cls(random.randrange(size), random.random() < 0.5, LONGEST_DELAY_S * random.random())

    @abstractmethod
    def happen(self, scene: Scene, operation: Operation, group: str) -> None:
        """Does it, and judges everything that comes of it."""

    def begin(self, scene: Scene, operation: Operation, group: str) -> Begun:
        """Begins the operation, and waits for the moment of the fault."""
        begun = scene.begin(operation, group, absent={self.victim} if self.absent else ())
        time.sleep(self.delay)
        return begun

    def member(self, scene: Scene, group: str) -> int:
        """A member of the group, for faults that only a member can have."""
        members = scene.groups[group]
        return members[self.victim % len(members)]

    def survivor(self, scene: Scene) -> int:
        """A rank that the fault leaves."""
        return next(rank for rank in range(scene.size) if rank != self.victim)

    def lost(self, scene: Scene, group: str, *, own: Allowed) -> dict[int, Allowed]:
        """What calls may come to when the victim is lost: its own, and the others'."""
        joined = not (self.absent and self.victim in scene.groups[group])
        others = Allowed(LOST, frozenset({self.victim}), success=joined)
        return dict.fromkeys(range(scene.size), others) | {self.victim: own}
