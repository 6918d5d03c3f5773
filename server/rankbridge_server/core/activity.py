"""What a rank does while others wait for it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto


class Doing(Enum):
    """What a rank does. Names are those of `rankbridge.v1.Doing`."""

    IDLE = auto()
    WAITING = auto()
    RUNNING = auto()
    FUNCTION = auto()
    STOPPED = auto()
    SILENT = auto()
    HELD = auto()


@dataclass(frozen=True, slots=True, kw_only=True)
class Activity:
    """What one rank does. `seconds`: for how long; with SILENT, how long others waited for its answer.

    `group`, `operation`, `operation_id`, `site`: of what it waits for, runs, or is held at; with FUNCTION, `operation`
    is the function's name. `where`: the innermost line of the user's code at which the function is; with IDLE, at which
    the script of the job is whose process this is.
    """

    doing: Doing
    seconds: float = 0.0
    group: str = ""
    operation: str = ""
    operation_id: str = ""
    site: str = ""
    where: str = ""

    def __str__(self) -> str:
        at = f" at {self.site}" if self.site else ""
        match self.doing:
            case Doing.IDLE:
                script = f"; its script is at {self.where}" if self.where else ""
                return f"it has no call, for {self.seconds:.1f} s{script}"
            case Doing.WAITING:
                return f"it waits in {self.operation} on {self.group}, for {self.seconds:.1f} s{at}"
            case Doing.RUNNING:
                return f"it runs {self.operation} on {self.group}, for {self.seconds:.1f} s{at}"
            case Doing.FUNCTION:
                within = f", and is at {self.where}" if self.where else ""
                return f"it runs function {self.operation}, for {self.seconds:.1f} s{at}{within}"
            case Doing.HELD:
                what = f"{self.operation} on {self.group}"
                return f"it is held at a breakpoint, at {what}, for {self.seconds:.1f} s{at}"
            case Doing.STOPPED:
                return "its process is stopped"
            case Doing.SILENT:
                return f"it did not say within {self.seconds * 1000:.0f} ms what it does"
