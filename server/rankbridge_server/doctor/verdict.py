"""What is said of a job."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from .evidence import Frame


class Kind(StrEnum):
    """What is wrong with a collective."""

    HEALTHY = "healthy"
    NEVER_CALLED = "never_called"
    """Others wait for a rank that has not called; its condition says why."""
    MISMATCH_KIND = "mismatch_kind"
    MISMATCH_SHAPE = "mismatch_shape"
    MISMATCH_DTYPE = "mismatch_dtype"
    MISMATCH_OP = "mismatch_op"
    MISMATCH_ROOT = "mismatch_root"
    MISMATCH_TERMS = "mismatch_terms"
    """Members differ in something else that they must agree on."""
    MEMBERSHIP = "membership"
    """Ranks know a group by one name with different members."""
    ORDER = "order"
    """Ranks called the same in another order."""
    ORDER_INVERSION = "order_inversion"
    """Ranks wait for each other in a circle."""
    P2P_UNMATCHED = "p2p_unmatched"
    RENDEZVOUS = "rendezvous"
    """A rank does not come to init_process_group, or the number of ranks is wrong."""
    SLOW = "slow"
    """The job moves, and one rank keeps the others waiting."""
    NETWORK = "network"
    UNKNOWN = "unknown"


class Condition(StrEnum):
    """What a culprit does instead."""

    ASLEEP = "asleep"
    SPINNING = "spinning"
    BLOCKED_READ = "blocked_read"
    LOCK = "lock"
    GIL_HELD = "gil_held"
    STOPPED = "stopped"
    DEAD = "dead"
    EXITED = "exited"
    TEARDOWN = "teardown"
    WAITING_FOR_CHILD = "waiting_for_child"
    STARVED = "starved"
    IN_COLLECTIVE = "in_collective"
    IDLE = "idle"
    """It has no call: its controller has not called it."""
    SILENT = "silent"
    """It does not answer, and what it does cannot be seen from outside."""
    HELD = "held"
    """A breakpoint holds it."""
    UNKNOWN = "unknown"


@dataclass(frozen=True, kw_only=True)
class Culprit:
    """A rank that others have to blame."""

    rank: int
    confidence: float
    """0 to 1."""
    condition: Condition = Condition.UNKNOWN
    pid: int | None = None
    host: str = ""
    why: str = ""
    stack: tuple[Frame, ...] = ()
    """Innermost first."""


@dataclass(frozen=True, kw_only=True)
class Side:
    """Ranks that asked for the same."""

    ranks: tuple[int, ...]
    what: str
    sites: tuple[Frame, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Wait:
    """A rank that waits, for which, and for how many seconds."""

    rank: int
    call: str
    waits_for: tuple[int, ...]
    seconds: float | None
    site: Frame | None = None


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """The verdict on a job."""

    kind: Kind
    summary: str
    confidence: float = 1.0
    culprits: tuple[Culprit, ...] = ()
    call: str = ""
    """The collective that it is about, as `all_reduce world#12`."""
    sides: tuple[Side, ...] = ()
    waits: tuple[Wait, ...] = ()
    cycle: tuple[int, ...] = ()
    advice: str = ""
    evidence: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    """What was not seen, and what would show it."""
    world_size: int = 0
