"""What a rank does that others wait for: from the state of its process, and its stacks."""

from __future__ import annotations

import signal

from .evidence import Process, RankEvidence, Thread
from .stacks import in_collective, in_teardown
from .verdict import Condition

_SLEEPS = {"nanosleep", "clock_nanosleep"}
_READS = {"read", "readv", "pread64", "recvfrom", "recvmsg", "accept", "accept4", "poll", "ppoll", "select"}
_READS |= {"pselect6", "epoll_wait", "epoll_pwait", "connect", "fsync"}
_WAITS = {"wait", "wait_for_completion", "synchronize", "result", "value"}
_CHILDREN = {"wait4", "waitid"}
_BY_WCHAN = (
    ("nanosleep", Condition.ASLEEP),
    ("locks_lock", Condition.LOCK),
    ("futex", Condition.LOCK),
    ("do_wait", Condition.WAITING_FOR_CHILD),
    ("read", Condition.BLOCKED_READ),
    ("wait_woken", Condition.BLOCKED_READ),
    ("sk_wait_data", Condition.BLOCKED_READ),
    ("accept", Condition.BLOCKED_READ),
    ("poll", Condition.BLOCKED_READ),
    ("do_select", Condition.BLOCKED_READ),
    ("folio_wait", Condition.BLOCKED_READ),
    ("io_schedule", Condition.BLOCKED_READ),
)


def condition(rank: RankEvidence, interval_s: float) -> Condition:
    """What it does. UNKNOWN if neither its process nor its stacks say so."""
    process = rank.process
    if rank.is_gone:
        return Condition.EXITED if process.exit_status == 0 else Condition.DEAD
    if rank.is_stopped:
        return Condition.STOPPED
    if rank.says:
        return Condition(rank.says)
    if gil_holder(rank) is not None:
        return Condition.GIL_HELD
    if in_teardown(rank):
        return Condition.TEARDOWN
    if rank.threads and (in_collective(rank.threads[0]) or _waits_for_work(rank)):
        return Condition.IN_COLLECTIVE
    if process.state == "R" or (process.cpu_s or 0) > interval_s / 2:
        starved = (process.run_delay_s or 0) > 0.8 * interval_s and (process.cpu_s or 0) < 0.1 * interval_s
        return Condition.STARVED if starved else Condition.SPINNING
    if process.state == "D":
        return Condition.BLOCKED_READ
    return waits_in_kernel(process)


def _waits_for_work(rank: RankEvidence) -> bool:
    """Whether it may be in the wait of a call, such as a receive. Python's own events wait in Python."""
    return rank.calling in _WAITS and (rank.process.syscall == "futex" or "futex" in rank.process.wchan)


def waits_in_kernel(process: Process) -> Condition:
    """What it waits for, as the kernel says it. UNKNOWN if it runs, or if the kernel does not say."""
    if process.state != "S":
        return Condition.UNKNOWN
    for names, found in (
        (_SLEEPS, Condition.ASLEEP),
        (_READS, Condition.BLOCKED_READ),
        (_CHILDREN, Condition.WAITING_FOR_CHILD),
        ({"futex", "flock"}, Condition.LOCK),
    ):
        if process.syscall in names:
            return found
    return next((found for part, found in _BY_WCHAN if part in process.wchan), Condition.UNKNOWN)


def gil_holder(rank: RankEvidence) -> Thread | None:
    """The thread that sleeps while it holds Python's lock, so that no other thread of the rank can run Python."""
    if not rank.still:
        return None
    return next((it for it in rank.threads if it.owns_gil and it.state in ("S", "D")), None)


def described(rank: RankEvidence, what: Condition) -> str:
    """The condition in words, with what the kernel says."""
    process = rank.process
    seconds = f" for {process.blocked_s:.1f} s" if process.blocked_s is not None else ""
    where = f" ({process.wchan})" if process.wchan and process.wchan != "0" else ""
    match what:
        case Condition.ASLEEP:
            return f"asleep{seconds}{where}"
        case Condition.SPINNING:
            return "running, without a collective" + (
                f": {process.cpu_s:.2f} s of CPU between both looks" if process.cpu_s is not None else ""
            )
        case Condition.BLOCKED_READ:
            return f"blocked, waiting for input{seconds}{where}"
        case Condition.LOCK:
            return f"waiting for a lock of its own{seconds}{where}"
        case Condition.GIL_HELD:
            holder = gil_holder(rank)
            return f"asleep in C, with Python's lock in the hands of thread {holder.name if holder else '?'}{where}"
        case Condition.STOPPED:
            return "stopped by a signal or a debugger (state T)"
        case Condition.DEAD:
            return f"dead: {process.reason}" if process.reason else f"dead{_exit(process.exit_status)}"
        case Condition.EXITED:
            return "exited normally"
        case Condition.TEARDOWN:
            return f"on its way out: it destroys its groups, or waits at exit{seconds}"
        case Condition.WAITING_FOR_CHILD:
            return f"waiting for a process that it started{seconds}"
        case Condition.STARVED:
            return f"starved of CPU: ready to run for {process.run_delay_s or 0:.2f} s between both looks"
        case Condition.IN_COLLECTIVE:
            return "in a collective"
        case Condition.IDLE:
            return f"idle{seconds}: it has no call"
        case Condition.HELD:
            return f"held at a breakpoint{seconds}"
        case Condition.SILENT:
            return "silent: it does not answer" + (
                f", and its process is in state {process.state}{where}" if process.state != "?" else ""
            )
        case Condition.UNKNOWN:
            return f"in state {process.state}{seconds}{where}"


def _exit(status: int | None) -> str:
    if status is None:
        return ""
    if status < 0:
        try:
            return f": {signal.Signals(-status).name}"
        except ValueError:
            return f": signal {-status}"
    return f": exit status {status}"
