"""Ranks among the processes of this host, and what the kernel says of them."""

from __future__ import annotations

import os
import platform
import socket
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from ...doctor.evidence import GONE, Process

_TICKS = os.sysconf("SC_CLK_TCK")
_SYSCALLS = {
    "x86_64": {
        0: "read", 7: "poll", 17: "pread64", 19: "readv", 23: "select", 34: "pause", 35: "nanosleep", 42: "connect",
        43: "accept", 45: "recvfrom", 47: "recvmsg", 61: "wait4", 73: "flock", 74: "fsync", 128: "rt_sigtimedwait",
        202: "futex", 230: "clock_nanosleep", 232: "epoll_wait", 247: "waitid", 270: "pselect6", 271: "ppoll",
        281: "epoll_pwait", 288: "accept4",
    },
    "aarch64": {
        22: "epoll_pwait", 32: "flock", 63: "read", 65: "readv", 67: "pread64", 72: "pselect6", 73: "ppoll",
        82: "fsync", 95: "waitid", 98: "futex", 101: "nanosleep", 115: "clock_nanosleep", 202: "accept",
        203: "connect", 207: "recvfrom", 212: "recvmsg", 242: "accept4", 260: "wait4",
    },
}  # fmt: skip
_JOB = ("MASTER_ADDR", "MASTER_PORT", "TORCHELASTIC_RUN_ID")
_SHOWN = ("RANK", "LOCAL_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE", *_JOB, "TORCHELASTIC_RESTART_COUNT")
WATCH_DIRECTORY = "RANKBRIDGE_WATCH_DIRECTORY"


class NoJob(Exception):
    """There is no job to look at, or more than one; says what to do."""


@dataclass(frozen=True)
class Found:
    """A process that is a rank."""

    pid: int
    rank: int | None
    """None: its environment does not say; torch is asked inside."""
    world_size: int
    environment: dict[str, str]
    watch_directory: str = ""

    @property
    def job(self) -> tuple[str, ...]:
        """What the ranks of a job have in common."""
        return tuple(self.environment.get(it, "") for it in _JOB)


@dataclass(frozen=True)
class Look:
    """What the kernel says of a rank's main thread at a moment."""

    state: str = GONE
    wchan: str = ""
    syscall: str = ""
    cpu_s: float = 0.0
    run_delay_s: float | None = None
    switches: int | None = None
    blocked_s: float | None = None
    threads: Mapping[int, str] | None = None
    """State of each thread by its number."""
    children: tuple[str, ...] = ()


def find(pids: Sequence[int] = ()) -> list[Found]:
    """The ranks of the job that these processes are of; without any, of the only job of this host.

    If the environment of a process names no rank, as under torch.multiprocessing, every process below it that has
    loaded torch counts as one. Raises NoJob.
    """
    candidates = list(_candidates())
    parents = {it: _parent(it) for it in _pids()}
    ranks = list(_outermost(candidates, parents))
    if pids:
        wanted = set()
        for pid in pids:
            if not Path(f"/proc/{pid}").exists():
                raise NoJob(f"there is no process {pid}")
            jobs = {it.job for it in candidates if pid in (it.pid, *_ancestors(it.pid, parents))}
            if not jobs:
                return _without_environment(pid, parents)
            wanted |= jobs
        ranks = [it for it in ranks if it.job in wanted]
    jobs = {it.job for it in ranks}
    if not jobs:
        raise NoJob(
            "no rank was found on this host: no process has RANK, WORLD_SIZE and MASTER_PORT in its environment (of "
            "other users' processes, root alone sees that)"
        )
    if len(jobs) > 1:
        firsts = sorted(min(it.pid for it in ranks if it.job == job) for job in jobs)
        raise NoJob(
            f"{len(jobs)} jobs run on this host: name one by a process of it: {', '.join(map(str, firsts))}"
        )
    return sorted(ranks, key=lambda it: it.rank or 0)


def _without_environment(pid: int, parents: Mapping[int, int]) -> list[Found]:
    found = [it for it in parents if pid in (it, *_ancestors(it, parents)) and _has_torch(it)]
    if not found:
        raise NoJob(
            f"process {pid} is no rank, and has started none that this user may see: none has "
            "RANK and WORLD_SIZE in its environment, or torch in its memory"
        )
    # Those that have started others come first.
    return [Found(it, None, 0, {}) for it in sorted(found, key=lambda it: len(list(_ancestors(it, parents))))]


def _candidates() -> Iterable[Found]:
    for pid in _pids():
        if pid == os.getpid():
            continue
        try:
            raw = Path(f"/proc/{pid}/environ").read_bytes()
        except OSError:
            continue
        if b"RANK=" not in raw:
            continue
        pairs = (it.partition(b"=") for it in raw.split(b"\0"))
        values = {
            name.decode("utf-8", "replace"): value.decode("utf-8", "replace") for name, _, value in pairs
        }
        rank, size = values.get("RANK", ""), values.get("WORLD_SIZE", "")
        if rank.isdecimal() and size.isdecimal() and "MASTER_PORT" in values:
            shown = {it: values[it] for it in _SHOWN if it in values}
            yield Found(pid, int(rank), int(size), shown, values.get(WATCH_DIRECTORY, ""))


def _outermost(candidates: Sequence[Found], parents: Mapping[int, int]) -> Iterable[Found]:
    """Of each rank the process that started the others, which load data; past a shell, which has no torch."""
    by_rank: dict[tuple[tuple[str, ...], int | None], list[Found]] = defaultdict(list)
    for it in candidates:
        by_rank[it.job, it.rank].append(it)
    for them in by_rank.values():
        with_torch = [it for it in them if len(them) == 1 or _has_torch(it.pid)] or them
        pids = {it.pid for it in with_torch}
        tops = [it for it in with_torch if not pids & set(_ancestors(it.pid, parents))]
        yield min(tops or with_torch, key=lambda it: it.pid)


def _has_torch(pid: int) -> bool:
    try:
        return b"libtorch" in Path(f"/proc/{pid}/maps").read_bytes()
    except OSError:
        return False


def _pids() -> list[int]:
    return [int(it) for it in os.listdir("/proc") if it.isdecimal()]


def _parent(pid: int) -> int:
    try:
        return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
    except (OSError, IndexError):
        return 0


def _ancestors(pid: int, parents: Mapping[int, int]) -> Iterable[int]:
    seen = set()
    while (pid := parents.get(pid, 0)) and pid not in seen:
        seen.add(pid)
        yield pid


def host() -> str:
    """Name of this host."""
    return socket.gethostname()


def look(pid: int) -> Look:
    """What the kernel says of it now. Its state is GONE if there is no such process."""
    main = Path(f"/proc/{pid}/task/{pid}")
    try:
        fields = (main / "stat").read_text().rpartition(")")[2].split()
    except OSError:
        return Look()
    return Look(
        state=fields[0],
        wchan=_read(main / "wchan").strip().removeprefix("0"),
        syscall=_syscall(_read(main / "syscall")),
        cpu_s=(int(fields[11]) + int(fields[12])) / _TICKS,
        run_delay_s=_run_delay(_read(main / "schedstat")),
        switches=_switches(_read(main / "status")),
        blocked_s=_blocked(main) if fields[0] in "SDTt" else None,
        threads=_threads(pid),
        children=_children(main),
    )


def between(first: Look, second: Look) -> Process:
    """A process as two looks show it."""
    return Process(
        state=second.state,
        wchan=second.wchan,
        syscall=second.syscall,
        cpu_s=round(second.cpu_s - first.cpu_s, 3),
        run_delay_s=_less(second.run_delay_s, first.run_delay_s),
        switches=None
        if second.switches is None or first.switches is None
        else second.switches - first.switches,
        blocked_s=second.blocked_s,
        children=second.children,
    )


def _less(later: float | None, earlier: float | None) -> float | None:
    return None if later is None or earlier is None else round(later - earlier, 3)


def _read(path: Path) -> str:
    try:
        return path.read_text()
    except OSError:
        return ""


def _syscall(text: str) -> str:
    number = text.split(" ", 1)[0].strip()
    return _SYSCALLS.get(platform.machine(), {}).get(int(number), "") if number.isdecimal() else ""


def _run_delay(text: str) -> float | None:
    fields = text.split()
    return int(fields[1]) / 1e9 if len(fields) == 3 else None


def _switches(text: str) -> int | None:
    for line in text.splitlines():
        if line.startswith("voluntary_ctxt_switches:"):
            return int(line.split()[1])
    return None


def _blocked(main: Path) -> float | None:
    """Since when it has not run: the scheduler's own clock, compared with what it says of this thread, which runs."""
    theirs, ours = _ran(_read(main / "sched")), _ran(_read(Path("/proc/thread-self/sched")))
    return None if theirs is None or ours is None else round(max(0.0, ours - theirs) / 1000, 3)


def _ran(text: str) -> float | None:
    for line in text.splitlines():
        if line.startswith("se.exec_start"):
            return float(line.rpartition(":")[2])
    return None


def _threads(pid: int) -> dict[int, str]:
    states = {}
    for task in Path(f"/proc/{pid}/task").glob("[0-9]*"):
        text = _read(task / "stat")
        if text:
            states[int(task.name)] = text.rpartition(")")[2].split()[0]
    return states


def _children(main: Path) -> tuple[str, ...]:
    found = []
    for pid in _read(main / "children").split()[:16]:
        stat = _read(Path(f"/proc/{pid}/stat"))
        if stat:
            found.append(
                f"{pid} {stat[stat.find('(') + 1 : stat.rfind(')')]} {stat.rpartition(')')[2].split()[0]}"
            )
    return tuple(found)


def owner(pid: int) -> tuple[int, int]:
    """User and group of a process. Raises OSError if there is none."""
    status = os.stat(f"/proc/{pid}")
    return status.st_uid, status.st_gid
