"""The process of one host that forks its ranks, forms their first generation, replaces them, and ends them."""

from __future__ import annotations

import os
import selectors
import signal
import socket
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Protocol

from .child import Child, fork
from .messages import Began, Failed, Form, Formed, Line, Message, Ping, Pong, Ready, Suspect
from .pmi import Pmi

# How long a rank may take to end after SIGTERM, before the agent kills it.
_STOP_GRACE_S = 3.0
# How long a rank may take to answer a ping; on a busy host that is seconds.
_PING_TIMEOUT_S = 5.0
_LOOK_S = 1.0
# Before the process after one that ended before it served, which the next one may do, too; twice as long each time.
_FIRST_PAUSE_S = 0.5
_LONGEST_PAUSE_S = 30.0
_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class StartError(Exception):
    """The gang did not start; says which rank failed and how."""


class Interrupted(Exception):
    """A signal has asked the agent to end."""

    def __init__(self, signum: int) -> None:
        super().__init__(signal.Signals(signum).name)
        self.signum = signum


@dataclass(frozen=True, slots=True)
class Started:
    """A gang that is ready: pid and endpoints by rank, and the generation that was formed."""

    pids: list[int]
    endpoints: list[list[str]]
    generation: int


RunRank = Callable[[int, Line], None]
"""The body of a rank's process: serves the rank until the agent is gone, which is at the other end of the line.

It serves at the same endpoints each time.
"""


class Watcher(Protocol):
    """Receives what happens to ranks: losses, exits, replacements."""

    def suspected(self, rank: int, pid: int) -> None:
        """The agent kills this process: other ranks have lost it, and it is stopped or does not answer."""

    def exited(self, rank: int, pid: int, how: str, replaced: bool) -> None:
        """A rank's process has ended. `replaced`: the agent forks another; after a pause, if this one never served."""

    def formed(self, generation: int) -> None:
        """A generation was formed. Each of its ranks reports it."""

    def replaced(self, rank: int, pid: int, endpoints: list[str]) -> None:
        """The new process serves. It belongs to no generation until a controller forms one with it."""


class Agent:
    """Forks `size` ranks. Use as a context manager: on leaving, every rank has ended.

    `replace`: a new process takes the place, and the endpoints, of a rank that ends, or that is stopped when others
    have lost it, as long as any is left. `helper`: the PMI server of the ranks that `start` forks, not of their
    replacements. While the agent is entered, SIGINT, SIGTERM and SIGHUP raise Interrupted out of its waits.
    """

    def __init__(
        self, size: int, run: RunRank, *, replace: bool, watch_stdin: bool, helper: Pmi | None = None
    ) -> None:
        self._size = size
        self._run = run
        self._replace = replace
        self._watch_stdin = watch_stdin
        self._helper = helper
        self._children: list[Child] = []
        self._endpoints: list[list[str]] = []
        self._pinged: dict[int, float] = {}
        # By rank: when its next process is to be forked, and the pause before it.
        self._due: dict[int, float] = {}
        self._pauses: dict[int, float] = {}
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
        if self._helper:
            self._selector.register(self._helper, selectors.EVENT_READ)
        return self

    def __exit__(self, *_: object) -> None:
        try:
            self._end_children()
        finally:
            if self._helper:
                self._helper.close()
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
            self._children.append(self._fork(rank))
        if self._helper:
            self._helper.forked()
        for child in self._children:
            self._endpoints.append(self._ready(child, deadline))
        first = self._children[0]
        targets = [endpoints[0] for endpoints in self._endpoints]
        first.line.send(Form(targets, max(1.0, deadline - time.monotonic())))
        formed = self._next(first, deadline)
        if not isinstance(formed, Formed):
            raise StartError(f"the first generation was not formed: {formed}")
        for child in self._children:
            self._watch_child(child)
        return Started([child.pid for child in self._children], self._endpoints, formed.generation)

    def watch(self, watcher: Watcher, look: Callable[[], None] | None = None) -> str:
        """Waits until there is a reason to end, and returns it. Calls `look` every second or so, if it is given.

        Raises Interrupted on a signal.
        """
        while any(not child.exit for child in self._children):
            patience = self._until_next()
            if look is not None:
                look()
                patience = min(_LOOK_S, patience or _LOOK_S) if patience != 0.0 else 0.0
            events = self._selector.select(patience)
            if not events:
                # Every message that came in time has been read.
                self._kill_silent(watcher)
            # What a rank has sent comes before its exit.
            for key, _ in sorted(events, key=lambda it: _is_exit(it[0])):
                if key.fileobj == 0:
                    if reason := _asked_to_end():
                        return reason
                elif key.fileobj is self._wake_out:
                    self._interrupted()
                elif self._helper and key.fileobj is self._helper:
                    self._helper.serve()
                else:
                    self._handle(key.data, watcher)
            self._fork_due()
        return "every rank has exited"

    def _fork(self, rank: int) -> Child:
        return fork(rank, partial(self._run, rank), self._children)

    def _watch_child(self, child: Child) -> None:
        self._selector.register(child.pidfd, selectors.EVENT_READ, (child, False))
        self._selector.register(child.line, selectors.EVENT_READ, (child, True))

    def _handle(self, source: tuple[Child, bool], watcher: Watcher) -> None:
        child, has_message = source
        if not has_message:
            self._ended(child, watcher)
            return
        messages = child.line.receive_all()
        if messages is None:
            # The rank has closed its end: its exit follows.
            self._selector.unregister(child.line)
        for message in messages or ():
            self._on_message(child, message, watcher)

    def _on_message(self, child: Child, message: Message, watcher: Watcher) -> None:
        if isinstance(message, Pong):
            self._pinged.pop(child.rank, None)
        elif isinstance(message, Suspect):
            self._ping_all()
        elif isinstance(message, Failed):
            child.failure = message.error
        elif isinstance(message, Began):
            watcher.formed(message.generation)
        elif isinstance(message, Ready):
            child.serves = True
            self._pauses.pop(child.rank, None)
            self._endpoints[child.rank] = message.endpoints
            watcher.replaced(child.rank, child.pid, message.endpoints)

    def _ended(self, child: Child, watcher: Watcher) -> None:
        self._selector.unregister(child.pidfd)
        if child.line.fileno() in self._selector.get_map():
            self._selector.unregister(child.line)
        self._pinged.pop(child.rank, None)
        how = child.reap()
        if not child.serves:
            how += " before it served" + (f": {child.failure}" if child.failure else "")
        # What keeps new ones from serving is better left to whoever starts the gang, once no rank is left.
        replaced = self._replace and (child.serves or any(not it.exit for it in self._children))
        watcher.exited(child.rank, child.pid, how, replaced)
        if replaced:
            self._due[child.rank] = time.monotonic() + (0.0 if child.serves else self._pause(child.rank))

    def _pause(self, rank: int) -> float:
        pause = self._pauses.get(rank, _FIRST_PAUSE_S)
        self._pauses[rank] = min(2 * pause, _LONGEST_PAUSE_S)
        return pause

    def _fork_due(self) -> None:
        now = time.monotonic()
        for rank in [rank for rank, due in self._due.items() if due <= now]:
            del self._due[rank]
            self._children[rank] = self._fork(rank)
            self._watch_child(self._children[rank])

    def _ping_all(self) -> None:
        if not self._replace:
            return
        due = time.monotonic() + _PING_TIMEOUT_S
        for child in self._children:
            if child.serves and not child.exit and child.rank not in self._pinged:
                self._pinged[child.rank] = 0.0 if child.stopped() else due
                child.line.try_send(Ping())

    def _until_next(self) -> float | None:
        due = min([*self._pinged.values(), *self._due.values()], default=None)
        return None if due is None else max(0.0, due - time.monotonic())

    def _kill_silent(self, watcher: Watcher) -> None:
        now = time.monotonic()
        for rank in [rank for rank, due in self._pinged.items() if due <= now]:
            del self._pinged[rank]
            watcher.suspected(rank, self._children[rank].pid)
            self._children[rank].kill(signal.SIGKILL)

    def _ready(self, child: Child, deadline: float) -> list[str]:
        ready = self._next(child, deadline)
        if not isinstance(ready, Ready):
            raise StartError(f"rank {child.rank} did not serve: {ready}")
        child.serves = True
        return ready.endpoints

    def _next(self, child: Child, deadline: float) -> Message:
        self._selector.register(child.line, selectors.EVENT_READ)
        try:
            while True:
                events = self._selector.select(max(0.0, deadline - time.monotonic()))
                if not events:
                    raise StartError(f"rank {child.rank} (pid {child.pid}) said nothing in time")
                ready = {key.fileobj for key, _ in events}
                if self._wake_out in ready:
                    self._interrupted()
                if 0 in ready and (reason := _asked_to_end()):
                    raise StartError(reason)
                if self._helper and self._helper in ready and (gone := self._helper.serve()):
                    raise StartError(
                        f"rank {gone[0]} (pid {self._children[gone[0]].pid}) ended before it served"
                    )
                if child.line in ready:
                    # Others may have come with it; of the first generation, the answer says all.
                    while isinstance(message := child.line.receive(), Began):
                        """The next one is on its way."""
                    if isinstance(message, Failed):
                        raise StartError(f"rank {child.rank}: {message.error}")
                    if message is None:
                        raise StartError(f"rank {child.rank} (pid {child.pid}) ended before it served")
                    return message
        finally:
            self._selector.unregister(child.line)

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


def _is_exit(key: selectors.SelectorKey) -> bool:
    return key.data is not None and not key.data[1]


def _ended(child: Child, timeout: float) -> bool:
    with selectors.DefaultSelector() as selector:
        selector.register(child.pidfd, selectors.EVENT_READ)
        return bool(selector.select(timeout))


def _asked_to_end() -> str | None:
    """The reason to end, if standard input is closed or has the line "stop"."""
    said = os.read(0, 65536)
    if not said:
        return "standard input was closed"
    stop = any(line.strip() == b"stop" for line in said.splitlines())
    return "standard input said stop" if stop else None
