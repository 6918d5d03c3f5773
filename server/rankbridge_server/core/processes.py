"""What the kernel says of a process, in /proc. Reading it stops nothing."""

from __future__ import annotations

import os
import platform
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

GONE = "gone"
"""State of a process that is no more."""
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


@dataclass(frozen=True)
class Look:
    """What the kernel says of a thread of a process, as a rule the main one, at a moment."""

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


@dataclass(frozen=True, kw_only=True)
class Memory:
    """Memory of a process, in bytes; and what its control group has gone through. None: the kernel does not say."""

    resident: int | None
    resident_peak: int | None
    throttled_s: float | None
    """For how long the group was not let run, because its share of the CPU was used up."""
    oom_kills: int | None
    """Processes of the group that were killed for want of memory."""


def look(pid: int, thread: int = 0) -> Look:
    """What the kernel says of a process now, by one thread; 0: the main one. GONE if there is none."""
    main = Path(f"/proc/{pid}/task/{thread or pid}")
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


def started(pid: int) -> int:
    """When a process began, by the kernel's count: with its number, the name of a process. 0: there is none."""
    fields = _read(Path(f"/proc/{pid}/stat")).rpartition(")")[2].split()
    return int(fields[19]) if len(fields) > 19 else 0


def memory(pid: int) -> Memory:
    """Memory of a process now."""
    status = _read(Path(f"/proc/{pid}/status"))
    group = _control_group(pid)
    throttled = _number(_read(group / "cpu.stat"), "throttled_usec ")
    resident, peak = _number(status, "VmRSS:"), _number(status, "VmHWM:")
    return Memory(
        resident=None if resident is None else resident * 1024,
        resident_peak=None if peak is None else peak * 1024,
        throttled_s=None if throttled is None else throttled / 1e6,
        oom_kills=_number(_read(group / "memory.events"), "oom_kill "),
    )


def _control_group(pid: int) -> Path:
    line = next(
        (it for it in _read(Path(f"/proc/{pid}/cgroup")).splitlines() if it.startswith("0::")), "0::/"
    )
    return Path("/sys/fs/cgroup") / line.removeprefix("0::").lstrip("/")


def _number(text: str, name: str) -> int | None:
    for line in text.splitlines():
        if line.startswith(name):
            return int(line.removeprefix(name).split()[0])
    return None


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
    return _number(text, "voluntary_ctxt_switches:")


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
