"""The process of one host that forks its ranks, forms their first generation, and ends them."""

from __future__ import annotations

import os
import selectors
import signal
import socket
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from .child import Child, fork
from .messages import Failed, Form, Formed, Line, Message, Ready

# How long ranks that were told to end may take before they are killed.
_STOP_GRACE_S = 3.0
_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class StartError(Exception):
    """The gang did not start; says which rank failed and how."""


class Interrupted(Exception):
    """A signal asked the agent to end."""

    def __init__(self, signum: int) -> None:
        super().__init__(signal.Signals(signum).name)
        self.signum = signum


@dataclass(frozen=True, slots=True)
class Started:
    """A gang that is ready: pid and endpoints by rank, and the generation that was formed."""

    pids: list[int]
    endpoints: list[list[str]]
    generation: int


class Agent:
    """Forks `size` ranks that run `run(rank, line)`. Use as a context manager: on leaving, every rank has ended.

    While it is entered, SIGINT, SIGTERM and SIGHUP raise Interrupted out of whatever waits here.
    """

    def __init__(self, size: int, run: Callable[[int, Line], None], *, watch_stdin: bool = False) -> None:
        self._size = size
        self._run = run
        self._watch_stdin = watch_stdin
        self._children: list[Child] = []
        self._selector = selectors.DefaultSelector()
        self._wake_out, self._wake_in = socket.socketpair()
        self._old_handlers: dict[signal.Signals, object] = {}

    def __enter__(self) -> Agent:
        self._wake_in.setblocking(False)
        signal.set_wakeup_fd(self._wake_in.fileno())
        for signum in _SIGNALS:
            self._old_handlers[signum] = signal.signal(signum, lambda *_: None)
        self._selector.register(self._wake_out, selectors.EVENT_READ)
        if self._watch_stdin:
            self._selector.register(0, selectors.EVENT_READ)
        return self

    def __exit__(self, *_: object) -> None:
        try:
            self._end_children()
        finally:
            signal.set_wakeup_fd(-1)
            for signum, handler in self._old_handlers.items():
                signal.signal(signum, handler)  # type: ignore[arg-type]
            self._selector.close()
            self._wake_out.close()
            self._wake_in.close()

    def start(self, timeout: float) -> Started:
        """Fork the ranks and form their first generation within `timeout` seconds.

        Raises StartError or Interrupted.
        """
        deadline = time.monotonic() + timeout
        for rank in range(self._size):
            child = fork(rank, partial(self._run, rank), self._children)
            self._children.append(child)
            self._selector.register(child.pidfd, selectors.EVENT_READ, child)
        endpoints: list[list[str]] = []
        for child in self._children:
            ready = self._next(child, deadline)
            if not isinstance(ready, Ready):
                raise StartError(f"rank {child.rank} did not serve: {ready}")
            endpoints.append(ready.endpoints)
        first = self._children[0]
        first.line.send(Form([targets[0] for targets in endpoints], max(1.0, deadline - time.monotonic())))
        formed = self._next(first, deadline)
        if not isinstance(formed, Formed):
            raise StartError(f"the first generation was not formed: {formed}")
        return Started([child.pid for child in self._children], endpoints, formed.generation)

    def watch(self, exited: Callable[[int, int, str], None]) -> str:
        """Wait until there is a reason to end, and return it. `exited(rank, pid, how)` is told of each lost rank.

        Raises Interrupted on a signal.
        """
        while any(not child.exit for child in self._children):
            for key, _ in self._selector.select():
                if key.fileobj == 0:
                    if not os.read(0, 65536):
                        return "standard input was closed"
                else:
                    self._handle(key, exited)
        return "every rank has exited"

    def _next(self, child: Child, deadline: float) -> Message:
        with selectors.DefaultSelector() as selector:
            selector.register(child.line, selectors.EVENT_READ)
            selector.register(self._wake_out, selectors.EVENT_READ)
            if self._watch_stdin:
                selector.register(0, selectors.EVENT_READ)
            while True:
                events = selector.select(max(0.0, deadline - time.monotonic()))
                if not events:
                    raise StartError(f"rank {child.rank} (pid {child.pid}) said nothing in time")
                ready = {key.fileobj for key, _ in events}
                if self._wake_out in ready:
                    self._interrupted()
                if 0 in ready and not os.read(0, 65536):
                    raise StartError("standard input was closed")
                if child.line in ready:
                    message = child.line.receive()
                    if isinstance(message, Failed):
                        raise StartError(f"rank {child.rank}: {message.error}")
                    if message is None:
                        raise StartError(f"rank {child.rank} (pid {child.pid}) ended before it served")
                    return message

    def _handle(self, key: selectors.SelectorKey, exited: Callable[[int, int, str], None]) -> None:
        if key.fileobj is self._wake_out:
            self._interrupted()
            return
        child: Child = key.data
        self._selector.unregister(child.pidfd)
        exited(child.rank, child.pid, child.reap())

    def _interrupted(self) -> None:
        for signum in self._wake_out.recv(64):
            if signum in _SIGNALS:
                raise Interrupted(signum)

    def _end_children(self) -> None:
        alive = [child for child in self._children if not child.exit]
        for child in alive:
            # A stopped process acts on SIGTERM only when it goes on.
            child.kill(signal.SIGTERM)
            child.kill(signal.SIGCONT)
        deadline = time.monotonic() + _STOP_GRACE_S
        for child in alive:
            if not _ended(child, max(0.0, deadline - time.monotonic())):
                child.kill(signal.SIGKILL)
            child.reap()


def _ended(child: Child, timeout: float) -> bool:
    with selectors.DefaultSelector() as selector:
        selector.register(child.pidfd, selectors.EVENT_READ)
        return bool(selector.select(timeout))
