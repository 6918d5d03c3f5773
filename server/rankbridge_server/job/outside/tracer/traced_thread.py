"""A thread of another process that makes calls for us."""

from __future__ import annotations

import copy
import errno
import os
import signal
import time
from types import TracebackType

from . import registers
from .registers import Request, ask

NOT_PERMITTED = (
    "this user may not trace it: run as root, or with CAP_SYS_PTRACE (in a container: --cap-add SYS_PTRACE)"
)
_ALL = 0x40000000
"""__WALL: a thread is waited for as a process is."""
_EVENT_STOP = 128
_RED_ZONE = 128
_NO_CALL = 2**64 - 1
_DIRECTION, _TRAP, _RESUME = 0x400, 0x100, 0x10000
_EINTR = 2**64 - errno.EINTR
# What the kernel would do with an interrupted call; no program sees these numbers.
_RESTARTSYS, _RESTARTNOINTR, _RESTARTNOHAND, _RESTART_BLOCK = (2**64 - it for it in (512, 513, 514, 516))
_INTERRUPTED = {_EINTR, _RESTARTSYS, _RESTARTNOINTR, _RESTARTNOHAND, _RESTART_BLOCK}
_EPOLL = {232, 281, 441}
_STOP_S = 1.0


class NotNow(Exception):
    """The thread can make no call: it is not where it was expected, does not stop, or may not be traced."""


class ProcessEnded(Exception):
    """The thread's process has ended."""


class TracedThread:
    """Stops one thread, and no other. Leaves it where it was, in the system call in which it was.

    The order is: attach, make calls, close. Who closes too early, or ends, takes the process along. Raises NotNow.
    """

    def __init__(self, number: int) -> None:
        self.number = number
        if "shstk" in _status(number, "x86_Thread_features").split():
            # A function would return to what is on that stack.
            raise NotNow(f"thread {number} has a shadow stack")
        try:
            ask(Request.SEIZE, number)
            ask(Request.INTERRUPT, number)
        except OSError as error:
            raise NotNow(_why_not(number, error)) from None
        self._await_stop()
        self._before = registers.general(number)
        self._vectors = registers.vectors(number)

    def __enter__(self) -> TracedThread:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None or not issubclass(kind, ProcessEnded):
            self.close()

    @property
    def is_blocked(self) -> bool:
        """Whether it was in a system call, which was interrupted and goes on when it is let go."""
        return self._before.orig_rax != _NO_CALL and self._before.rax in _INTERRUPTED

    def call(self, function: int, *arguments: int, back_to: int) -> int:
        """Lets it call a function; gives what the function returns.

        `back_to`: where an instruction int3 is, to which the function returns. Raises ProcessEnded.
        """
        now = copy.copy(self._before)
        # Before a function's first instruction, the stack is 8 bytes off a multiple of 16.
        now.rsp = (self._before.rsp - _RED_ZONE & ~15) - 8
        self.write(now.rsp, back_to.to_bytes(8, "little"))
        for name, value in zip(("rdi", "rsi", "rdx"), arguments, strict=False):
            setattr(now, name, value)
        now.rax, now.orig_rax, now.rip = 0, _NO_CALL, function
        now.eflags &= ~(_DIRECTION | _TRAP | _RESUME)
        registers.set_general(self.number, now)
        signum = 0
        while True:
            ask(Request.CONT, self.number, data=signum)
            stopped_by, is_event = self._stop()
            while is_event and stopped_by != signal.SIGTRAP:
                # The whole process was stopped, and stays so until it is woken.
                ask(Request.LISTEN, self.number)
                stopped_by, is_event = self._stop()
            found = registers.general(self.number)
            if stopped_by == signal.SIGTRAP and not is_event and found.rip == back_to + 1:
                return found.rax
            signum = 0 if is_event else stopped_by

    def write(self, address: int, content: bytes) -> None:
        """Writes into the memory of its process."""
        with open(f"/proc/{self.number}/mem", "r+b", buffering=0) as memory:
            memory.seek(address)
            memory.write(content)

    def close(self) -> None:
        """Lets it go on where it was."""
        before = copy.copy(self._before)
        if before.orig_rax in _EPOLL and before.rax == _EINTR:
            # The kernel does not make this call again by itself, and not every program does.
            before.rax = _RESTARTNOHAND
        registers.set_vectors(self.number, self._vectors)
        registers.set_general(self.number, before)
        ask(Request.DETACH, self.number)

    def _await_stop(self) -> None:
        deadline = time.monotonic() + _STOP_S
        while True:
            found, status = os.waitpid(self.number, _ALL | os.WNOHANG)
            if found:
                break
            if time.monotonic() > deadline:
                # It goes on when this process ends.
                raise NotNow(f"thread {self.number} does not stop")
            time.sleep(0.0005)
        if not os.WIFSTOPPED(status):
            raise NotNow(f"thread {self.number} has ended")
        if status >> 16 != _EVENT_STOP or os.WSTOPSIG(status) != signal.SIGTRAP:
            ask(Request.DETACH, self.number, data=0 if status >> 16 else os.WSTOPSIG(status))
            raise NotNow(f"thread {self.number} is being stopped or gets a signal")

    def _stop(self) -> tuple[int, bool]:
        """Waits for its next stop: by which signal, and whether it is a stop without a signal to deliver."""
        _, status = os.waitpid(self.number, _ALL)
        if not os.WIFSTOPPED(status):
            raise ProcessEnded(f"the process of thread {self.number} has ended")
        return os.WSTOPSIG(status), status >> 16 == _EVENT_STOP


def _why_not(number: int, error: OSError) -> str:
    if error.errno == errno.ESRCH:
        return f"thread {number} has ended"
    if error.errno != errno.EPERM:
        return f"thread {number} cannot be traced: {error.strerror}"
    tracer = _tracer(number)
    if tracer:
        return f"process {tracer} traces thread {number} already"
    return NOT_PERMITTED


def _tracer(number: int) -> int:
    return int(_status(number, "TracerPid") or 0)


def _status(number: int, name: str) -> str:
    """A line of what the kernel says of a thread; empty: there is none."""
    try:
        with open(f"/proc/{number}/status") as status:
            lines = (line.partition(":") for line in status)
            return next((value.strip() for key, _, value in lines if key == name), "")
    except OSError:
        return ""
