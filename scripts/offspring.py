"""Child processes that never outlive the one who started them, whatever signal comes when. Linux only.

Signals raise nothing by themselves: they are read where this module waits, so that none can fall between the
start of a child and the note of its pid. Orphans of children come to this process (a "child subreaper"),
so that `living` sees every process that descends from it, and leaving the `with` block ends them all.
"""

import contextlib
import ctypes
import os
import selectors
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import NoReturn, Self

_PR_SET_CHILD_SUBREAPER = 36
_STOPPERS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_DEATH_SECONDS = 10.0


class Interrupted(Exception):
    """A signal asked this process to end."""

    def __init__(self, number: signal.Signals) -> None:
        """Takes the signal that came."""
        super().__init__(number.name)
        self.signal = number


class Offspring:
    """Every process that this one has started. Use it as a context manager, once, in the main thread."""

    def __init__(self, grace_seconds: float = 10.0) -> None:
        """Takes how long processes have to end when asked, before they are killed."""
        self._grace_seconds = grace_seconds

    def __enter__(self) -> Self:
        """Takes over the signals."""
        ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
        self._children: list[Child] = []
        self._signals, self._wakeup = socket.socketpair()
        self._signals.setblocking(False)
        self._wakeup.setblocking(False)
        signal.set_wakeup_fd(self._wakeup.fileno(), warn_on_full_buffer=False)
        for number in (*_STOPPERS, signal.SIGCHLD):
            signal.signal(number, lambda *_: None)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Ends every process that is left: asks them, gives them time, then kills them."""
        self._end(signal.SIGTERM, self._grace_seconds)
        self._end(signal.SIGKILL, _DEATH_SECONDS)
        for child in self._children:
            child.close()

    def start(
        self,
        command: Sequence[str],
        *,
        folder: Path | None = None,
        environment: Mapping[str, str] | None = None,
        attended: bool = False,
    ) -> "Child":
        """Starts a command in a process group of its own.

        Attended, its output is kept instead of shown, and its standard input closes when this process ends,
        however it ends.
        """
        process = subprocess.Popen(
            command,
            cwd=folder,
            env={**os.environ, **(environment or {})},
            stdin=subprocess.PIPE if attended else subprocess.DEVNULL,
            stdout=subprocess.PIPE if attended else None,
            stderr=subprocess.STDOUT if attended else None,
            process_group=0,
        )
        child = Child(self, process)
        self._children.append(child)
        return child

    def living(self) -> list[str]:
        """Pid and name of each process that descends from this one and has not ended, by pid."""
        parents = dict(_processes())
        found = {os.getpid()}
        while grown := {pid for pid, (parent, _) in parents.items() if parent in found} - found:
            found |= grown
        found.discard(os.getpid())
        return [f"{pid} {parents[pid][1]}" for pid in sorted(found)]

    def said(self) -> list[str]:
        """What each attended child has said so far, in the order of their starts."""
        return [child.text for child in self._children if child.text]

    def wait(self, done: Callable[[], bool], seconds: float) -> bool:
        """Waits until `done`, which is asked whenever a child ends or says something, at most `seconds`.

        Raises Interrupted.
        """
        end = time.monotonic() + seconds
        with selectors.DefaultSelector() as selector:
            selector.register(self._signals, selectors.EVENT_READ)
            for child in self._children:
                if child.is_open:
                    selector.register(child.pipe, selectors.EVENT_READ, child)
            while not self._is(done):
                rest = end - time.monotonic()
                if rest <= 0:
                    return False
                for key, _ in selector.select(rest):
                    if key.data is not None and not key.data.read():
                        selector.unregister(key.fileobj)
        return True

    def die_by(self, number: signal.Signals) -> NoReturn:
        """Ends every process, this one last, by the signal."""
        self.__exit__(None, None, None)
        signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)
        raise AssertionError(f"{number.name} did not end this process")

    def _is(self, done: Callable[[], bool]) -> bool:
        # A signal to the process group may have ended a child too, which was not in a group of its own yet: that this
        # process is to end explains the child's end, and is read after it.
        is_done = done()
        self._read_signals()
        return is_done

    def _read_signals(self) -> None:
        with contextlib.suppress(BlockingIOError):
            for number in self._signals.recv(4096):
                if number in _STOPPERS:
                    raise Interrupted(signal.Signals(number))

    def _end(self, number: signal.Signals, seconds: float) -> None:
        for line in self.living():
            with contextlib.suppress(ProcessLookupError):
                os.kill(int(line.split()[0]), number)
        end = time.monotonic() + seconds
        while self.living() and time.monotonic() < end:
            with contextlib.suppress(Interrupted):  # ending everything is what was asked for
                self.wait(lambda: not self.living(), end - time.monotonic())


class Child:
    """One command that was started."""

    def __init__(self, offspring: Offspring, process: "subprocess.Popen[bytes]") -> None:
        """Use `Offspring.start`."""
        self._offspring = offspring
        self._process = process
        self._output = b""
        self.is_open = process.stdout is not None

    @property
    def pipe(self) -> int:
        """File descriptor of its output."""
        assert self._process.stdout is not None
        return self._process.stdout.fileno()

    @property
    def text(self) -> str:
        """What it has said so far."""
        return self._output.decode(errors="replace").strip()

    def read(self) -> bool:
        """Takes in what it has said; tells whether more may come."""
        said = os.read(self.pipe, 65536)
        self._output += said
        self.is_open = bool(said)
        return self.is_open

    def read_until(self, done: Callable[[], bool], seconds: float) -> bool:
        """Reads its output until `done`, asked after each piece. False: it ended, or too late."""
        self._offspring.wait(lambda: done() or not self.is_open, seconds)
        return done()

    def close(self) -> None:
        """Collects its exit status, if it has ended, and closes its input and output."""
        self._process.poll()
        for stream in (self._process.stdin, self._process.stdout):
            if stream is not None:
                stream.close()

    def terminate(self) -> None:
        """Asks it, and it alone, to end."""
        self._process.terminate()

    def wait(self, seconds: float) -> int | None:
        """Waits for its end. Its exit status; None: `seconds` passed before."""
        ended = self._offspring.wait(lambda: self._process.poll() is not None, seconds)
        return self._process.returncode if ended else None


def _processes() -> list[tuple[int, tuple[int, str]]]:
    """Pid, parent's pid and name of every process that has not ended."""
    found = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        with contextlib.suppress(OSError):
            head, _, tail = (entry / "stat").read_text(errors="replace").rpartition(")")
            state, parent = tail.split()[:2]
            if state != "Z":
                found.append((int(entry.name), (int(parent), head.partition("(")[2])))
    return found
