"""What is known of a job's ranks at one moment. Every field may be unknown: then it is None, empty, or "?"."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from ..core.processes import GONE


@dataclass(frozen=True, kw_only=True)
class Frame:
    """One frame of a stack."""

    name: str
    file: str
    line: int

    def __str__(self) -> str:
        return f"{self.name} {self.file.rsplit('/', 1)[-1]}:{self.line}".lstrip()


@dataclass(frozen=True, kw_only=True)
class Thread:
    """A thread that runs Python. `frames` begin with the innermost."""

    name: str
    os_id: int | None = None
    state: str = "?"
    """The letter that /proc has."""
    owns_gil: bool | None = None
    frames: tuple[Frame, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Process:
    """A rank's process, between two looks at it. Times are in seconds, and of its main thread."""

    state: str = "?"
    """The letter that /proc has, or GONE."""
    wchan: str = ""
    syscall: str = ""
    """Name of the system call that it is in."""
    cpu_s: float | None = None
    run_delay_s: float | None = None
    switches: int | None = None
    """How often it gave up the CPU by itself."""
    blocked_s: float | None = None
    """Since when it has not run."""
    exit_status: int | None = None
    """Negative: the signal that ended it."""
    reason: str = ""
    """The exception that ended it, as far as it could say so."""
    children: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Group:
    """A group as one rank knows it."""

    name: str
    ranks: tuple[int, ...]
    backend: str = ""
    description: str = ""


@dataclass(frozen=True, kw_only=True)
class Call:
    """A collective that a rank has issued, or a send or receive."""

    group: str
    number: int
    """Counts from 1: in the group; of sends and receives, among those with the same peer and tag."""
    kind: str
    dtypes: tuple[str, ...] = ()
    shapes: tuple[tuple[int, ...], ...] = ()
    op: str | None = None
    root: int | None = None
    peer: int | None = None
    """Rank in the job that this one sends to or receives from."""
    tag: int | None = None
    site: Frame | None = None
    called_at: float | None = None
    """In seconds since 1970."""
    returned_at: float | None = None
    """When it returned to its caller, likewise. The collective may go on then."""
    waited_at: float | None = None
    """When the caller's wait for it was over, as far as that was recorded."""
    done: bool | None = None
    on_device: bool = False
    """Whether a device does it: it goes on when the call has returned, and its rank may be far ahead of it."""

    @property
    def is_p2p(self) -> bool:
        """Whether it is a send or a receive."""
        return self.kind in ("send", "recv") or self.tag is not None

    @property
    def is_send(self) -> bool:
        """Of those, whether it is a send; vLLM's coordinators also send objects."""
        return self.kind.startswith("send")

    @property
    def answer(self) -> str:
        """The kind of what a send or a receive meets."""
        mine, theirs = ("send", "recv") if self.is_send else ("recv", "send")
        return self.kind.replace(mine, theirs, 1)

    def counterpart(self, rank: int) -> Call:
        """What a send or a receive of this rank meets on the other end."""
        return replace(self, kind=self.answer, peer=rank)


@dataclass(frozen=True, kw_only=True)
class RankEvidence:
    """One rank."""

    rank: int
    pid: int | None = None
    host: str = ""
    process: Process = Process()
    groups: tuple[Group, ...] = ()
    threads: tuple[Thread, ...] = ()
    """Of the second look. The main thread is the first."""
    still: bool | None = None
    """Whether its main thread was at the same place in both looks."""
    calling: str = ""
    """The method, in C, that its main thread's innermost line has called."""
    begun: bool | None = None
    """Whether it has a process group."""
    source: str = ""
    """Where `calls` are from: "flight recorder", "ring", "record", "functions", "ras"; "" where they are not known."""
    calls: tuple[Call, ...] = ()
    """The newest of each group, in the order in which they were issued."""
    waiting_s: float | None = None
    """For how long it has been in a wait for a call, as the rank itself has noted it."""
    says: str = ""
    """What it does, as the value of a condition, where that is known without its stacks."""
    late_s: float = 0.0
    """For how long it has kept others waiting before, at most, as its gang's records say."""
    environment: dict[str, str] = field(default_factory=dict)
    """What its start gave it: WORLD_SIZE and the like."""
    notes: tuple[str, ...] = ()

    @property
    def is_gone(self) -> bool:
        """Whether its process has ended."""
        return self.process.state in (GONE, "Z", "X")

    @property
    def has_disagreed(self) -> bool:
        """Whether guard has ended it, as ranks called what does not go together."""
        return self.process.reason.startswith("GuardError: MISMATCH")

    @property
    def is_stopped(self) -> bool:
        """Whether its process is stopped by a signal or a debugger."""
        return self.process.state in ("T", "t")


@dataclass(frozen=True, kw_only=True)
class Evidence:
    """A job."""

    at: float
    """When the second look was taken, in seconds since 1970."""
    interval_s: float
    """Between both looks."""
    world_size: int
    ranks: tuple[RankEvidence, ...]
    has_numbers: bool = True
    """Whether people know calls by their numbers; otherwise these say in which order calls came, and no more."""
    ended_by: str = ""
    """The signal with which somebody has ended the job from outside."""
    notes: tuple[str, ...] = ()
    """What could not be collected, and what would make it possible."""

    @property
    def is_over(self) -> bool:
        """Whether the job has ended, and only what its ranks have left is known."""
        return all(it.is_gone for it in self.ranks)
