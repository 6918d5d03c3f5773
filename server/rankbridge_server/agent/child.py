"""One rank's process, as its agent sees it."""

from __future__ import annotations

import ctypes
import os
import signal
import socket
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

from .messages import Line

_PR_SET_PDEATHSIG = 1


@dataclass(slots=True)
class Child:
    """A forked rank. `pidfd` is readable when it has ended. `serves`: it has sent Ready. `failure`: of Failed."""

    rank: int
    pid: int
    pidfd: int
    line: Line
    exit: str = ""
    serves: bool = False
    failure: str = ""

    def kill(self, signum: signal.Signals) -> None:
        """Signal the process, if it has not ended."""
        if not self.exit:
            signal.pidfd_send_signal(self.pidfd, signum)

    def stopped(self) -> bool:
        """Whether a signal has stopped the process."""
        try:
            status = Path(f"/proc/{self.pid}/stat").read_text()
        except OSError:
            return False
        # After the name, which is in parentheses and may hold anything.
        return status.rpartition(")")[2].split()[0] in ("T", "t")

    def reap(self) -> str:
        """Collects the ended process; returns how it ended."""
        _, status = os.waitpid(self.pid, 0)
        code = os.waitstatus_to_exitcode(status)
        self.exit = f"killed by {signal.Signals(-code).name}" if code < 0 else f"exited with status {code}"
        os.close(self.pidfd)
        self.line.close()
        return self.exit


def fork(rank: int, run: Callable[[Line], None], others: list[Child]) -> Child:
    """Fork a process that runs `run` and exits; it never outlives this one.

    Call it from a thread that lives as long as the process, before this process has made threads, or channels and
    servers of gRPC.
    """
    ours, theirs = socket.socketpair()
    parent = os.getpid()
    pid = os.fork()
    if not pid:
        _be_child(parent, lambda: _run(run, theirs, [ours, *(child.line for child in others)]))
    theirs.close()
    return Child(rank, pid, os.pidfd_open(pid), Line(ours))


def _be_child(parent: int, run: Callable[[], None]) -> NoReturn:
    status = 1
    try:
        # A rank that is stopped, or stuck in an engine, must still end with its agent.
        ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() == parent:
            run()
            status = 0
    except BaseException as error:
        os.write(2, f"rankbridge: a rank failed: {type(error).__name__}: {error}\n".encode())
    finally:
        # Engines may have threads that never end, and nothing here needs an orderly exit.
        os._exit(status)


def _run(run: Callable[[Line], None], sock: socket.socket, inherited: list[socket.socket | Line]) -> None:
    for end in inherited:
        end.close()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    signal.set_wakeup_fd(-1)
    run(Line(sock))
