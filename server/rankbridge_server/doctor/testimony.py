"""What the ranks of a gang say of themselves, for a verdict."""

from __future__ import annotations

from dataclasses import dataclass

from ..core.activity import Activity
from ..core.processes import GONE
from .evidence import Call, Group, Process, Thread


@dataclass(frozen=True, kw_only=True)
class Operation:
    """An operation of a rank's record. Times are in seconds since 1970; None: it has not come so far."""

    kind: str
    group: str
    operation_id: str = ""
    contract: str = ""
    site: str = ""
    function: str = ""
    called_at: float
    announced_at: float | None = None
    entered_at: float | None = None
    done_at: float | None = None
    code: str = ""
    """How it failed, as "PEER_MISSING". Empty: it did not."""
    message: str = ""
    generation: int = 0
    sequence: int | None = None
    """How many operations its group had admitted before: of one generation, the same on all members. None: unknown."""


@dataclass(frozen=True, kw_only=True)
class Admission:
    """Members of a group that wait for others, as its leader says. Ranks are those in the gang.

    `arrived`: each with how many seconds it came after the first; `waited_s`: since the first came.
    """

    group: str
    kind: str
    operation_id: str
    arrived: tuple[tuple[int, float], ...]
    missing: tuple[int, ...]
    waited_s: float


@dataclass(frozen=True, kw_only=True)
class TorchState:
    """What torch.distributed has of a rank's process.

    `calling`: the method in C that the innermost line of the user's thread has called. `peer`, `tag`: of the call of
    torch.distributed that it is in; `peer` is the root of a collective. `script`: all of it is of a job's script,
    and not of functions. `waiting_since`: since when it is in a call of a coordinator, of which its stack says nothing,
    in seconds since 1970; None: in none.
    """

    groups: tuple[Group, ...]
    calls: tuple[Call, ...] = ()
    calling: str = ""
    peer: int | None = None
    tag: int | None = None
    script: bool = False
    waiting_since: float | None = None


@dataclass(frozen=True, kw_only=True)
class Outside:
    """That a rank has not said it itself. `alive_at`: when it ran Python last, in seconds since 1970.

    `in_order`: somebody ended it in order.
    """

    alive_at: float
    in_order: bool = False


@dataclass(frozen=True, kw_only=True)
class Testimony:
    """One rank. `threads`: the one that runs the user's code is the first; none: no code of the user's runs."""

    rank: int
    pid: int
    host: str
    process: Process
    groups: tuple[Group, ...] = ()
    operations: tuple[Operation, ...] = ()
    """Those that are done, in the order in which they ended; then those that are not."""
    admissions: tuple[Admission, ...] = ()
    activity: Activity | None = None
    threads: tuple[Thread, ...] = ()
    still: bool | None = None
    lost: tuple[tuple[int, str], ...] = ()
    """The ranks whose loss ended its generation, with the reason."""
    over: str = ""
    """Why its generation is over. Empty: it is not."""
    torch: TorchState | None = None
    outside: Outside | None = None
    """None: the rank itself has said all this. Otherwise `threads` are in any order."""

    @property
    def is_gone(self) -> bool:
        """Whether its process has ended."""
        return self.process.state in (GONE, "Z", "X")


@dataclass(frozen=True, kw_only=True)
class Silence:
    """A rank that has not answered, with what its host says of its process. `pid`: None: not known.

    `threads`: those that run Python, as they are read from outside; none: they were not. `still`: whether all of them
    were at the same places in both looks.
    """

    rank: int
    pid: int | None = None
    host: str = ""
    process: Process
    threads: tuple[Thread, ...] = ()
    still: bool | None = None
