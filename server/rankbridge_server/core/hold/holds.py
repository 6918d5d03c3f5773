"""The breakpoints of one rank, and the calls that they hold."""

from __future__ import annotations

import itertools
import threading
import time
from collections import deque
from collections.abc import Callable
from enum import Enum, auto
from typing import NamedTuple

from ..errors import BridgeError, ErrorCode, exhausted
from ..refs.summary import Bounds
from .breakpoint import Breakpoint, Ended, SeenCall
from .inputs import Inputs

MAX_BREAKPOINTS = 64
_UNREAD = 1024
"""Notices that are kept for a controller that does not read; beyond these, the oldest are dropped."""


class Action(Enum):
    """How a call is let go. Names are those of `rankbridge.v1.Action`.

    STEP: the next call of this rank is held again. SKIP: the call is not made. FAIL: neither, and it raises.
    """

    CONTINUE = auto()
    STEP = auto()
    SKIP = auto()
    FAIL = auto()


class Release(NamedTuple):
    """How a call was let go, and what the controller says of it."""

    action: Action
    message: str = ""


GO = Release(Action.CONTINUE)

Hook = Callable[["Holds"], Callable[[], None]]


class Held:
    """A rank that waits at a call. `is_after`: after it. `why`: what holds it there. `since`: seconds since 1970."""

    def __init__(self, number: int, by: SetBreakpoint, call: SeenCall, why: str, is_after: bool) -> None:
        self.number = number
        self.is_after = is_after
        self.by = by
        self.call = call
        self.why = why
        self.since = time.time()
        self.release: Release | None = None
        self.may_go = threading.Event()


class Notice(NamedTuple):
    """What a controller hears: a call is held, or, with a release, was let go."""

    held: Held
    release: Release | None = None


class SetBreakpoint:
    """A breakpoint that a controller has set. One thread calls `next`; any calls `close`."""

    def __init__(self, holds: Holds, number: int, breakpoint: Breakpoint) -> None:
        self.number = number
        self.breakpoint = breakpoint
        self.is_stepping = False
        self.has_held = False
        self.is_open = True
        self.notices: deque[Notice] = deque(maxlen=_UNREAD)
        self._holds = holds

    def next(self) -> Notice | None:
        """Waits for what happens next. None: it is closed."""
        changed = self._holds.changed
        with changed:
            changed.wait_for(lambda: self.notices or not self.is_open)
            return self.notices.popleft() if self.is_open else None

    def close(self) -> None:
        """Removes the breakpoint, and lets go all that it holds."""
        self._holds.remove(self)


class Holds:
    """The breakpoints of one rank, which hold calls while it has a generation. Thread-safe.

    `find`: what of these is in a tensor, in words; empty: nothing. `hook`: called when there is a breakpoint: it makes
    the user's own collectives come here; what it returns is called when there is none any more.
    """

    def __init__(self, find: Callable[[object, Bounds], str], hook: Hook | None = None) -> None:
        self.changed = threading.Condition(threading.Lock())
        self.active = False
        """Whether calls may be held. Read without a lock, before each call."""
        self.looks_after = False
        """Whether calls may be held after their end."""
        self.inputs = Inputs()
        self._find = find
        self._hook = hook
        self._unhook: Callable[[], None] | None = None
        self._hooking = threading.Lock()
        self._closed = False
        self._is_formed = False
        self._numbers = itertools.count(1)
        self._held_numbers = itertools.count(1)
        self._breakpoints: list[SetBreakpoint] = []
        self._held: dict[int, Held] = {}

    def set(self, breakpoint: Breakpoint) -> SetBreakpoint:
        """Sets a breakpoint. Raises RESOURCE_EXHAUSTED, and ABORTED when the rank stops."""
        with self.changed:
            if self._closed:
                raise BridgeError.of(ErrorCode.ABORTED, "the rank stops")
            if len(self._breakpoints) >= MAX_BREAKPOINTS:
                got = str(len(self._breakpoints) + 1)
                raise exhausted("too many breakpoints on this rank", most=str(MAX_BREAKPOINTS), got=got)
            made = SetBreakpoint(self, next(self._numbers), breakpoint)
            self._breakpoints.append(made)
            self._look()
        try:
            self._hook_or_unhook()
        except BaseException:
            self.remove(made)
            raise
        return made

    def begin_generation(self) -> None:
        """Lets breakpoints hold calls."""
        with self.changed:
            self._is_formed = True
            self._look()

    def end_generation(self) -> None:
        """Lets everything go, because the generation is over: what is held could do nothing any more."""
        with self.changed:
            self._is_formed = False
            self._look()
            for held in self.held():
                self._let_go(held, GO)

    def remove(self, it: SetBreakpoint) -> None:
        """Removes a breakpoint, and lets go what it holds."""
        with self.changed:
            if it in self._breakpoints:
                self._breakpoints.remove(it)
            self._look()
            it.is_open = False
            for held in [held for held in self._held.values() if held.by is it]:
                self._let_go(held, GO)
            self.changed.notify_all()
        self._hook_or_unhook()

    def held(self) -> list[Held]:
        """The calls that are held, the oldest first."""
        return list(self._held.copy().values())

    def breakpoints(self) -> list[SetBreakpoint]:
        """The breakpoints, the oldest first."""
        return list(self._breakpoints)

    def get(self, number: int) -> Held:
        """A call that is held; 0: the oldest. Raises UNKNOWN_OPERATION."""
        held = self._held.copy()
        found = next(iter(held.values()), None) if number == 0 else held.get(number)
        if found is None:
            raise BridgeError.of(
                ErrorCode.UNKNOWN_OPERATION,
                "this call is not held on this rank" if number else "this rank holds no call",
                expected=", ".join(map(str, held)) or "a rank that is held",
                got=str(number),
            )
        return found

    def release(self, held: Held, release: Release) -> bool:
        """Lets a call go. Returns whether it was held until now."""
        with self.changed:
            if release.action is Action.STEP and held.number in self._held:
                held.by.is_stepping = True
            return self._let_go(held, release)

    def let_go(self, held: Held) -> None:
        """Lets a call go on, if it is held."""
        self.release(held, GO)

    def before(
        self,
        call: SeenCall,
        begin: Callable[[Held], None] = lambda held: None,
        patience: float | None = None,
    ) -> Release:
        """Holds a call that is about to be entered, if a breakpoint is there, until it is let go.

        `begin`: called with it before it waits. `patience`: seconds after which it goes on by itself; None: never.
        """
        for it in self.breakpoints():
            if why := self._why_before(it, call):
                held = self._hold(it, call, why, is_after=False)
                if held is not None:
                    begin(held)
                    return self._wait(held, patience)
        return GO

    def after(self, call: SeenCall, ended: Ended) -> None:
        """Holds the rank after a call, if a breakpoint is there, until it is let go."""
        for it in self.breakpoints():
            if it.breakpoint.names(call) and (why := it.breakpoint.why(ended)):
                held = self._hold(it, call, why, is_after=True)
                if held is not None:
                    self._wait(held, None)
                    return

    def close(self) -> None:
        """Lets everything go, for good."""
        with self.changed:
            self._closed = True
            breakpoints = list(self._breakpoints)
        for it in breakpoints:
            self.remove(it)

    def _why_before(self, it: SetBreakpoint, call: SeenCall) -> str:
        """Says why a breakpoint holds a call. Empty: it does not."""
        wanted = it.breakpoint
        if it.is_stepping:
            return "step"
        if wanted.is_after or not wanted.names(call):
            return ""
        # What is skipped has not been counted: the next call has its number.
        if wanted.number and it.has_held:
            return ""
        if not wanted.bounds:
            return "breakpoint"
        found = ((at, self._find(tensor, wanted.bounds)) for at, tensor in enumerate(call.inputs()))
        return next((f"{what} in input {at}" for at, what in found if what), "")

    def _hold(self, by: SetBreakpoint, call: SeenCall, why: str, *, is_after: bool) -> Held | None:
        """Notes a call as held. None: nothing is held any more."""
        with self.changed:
            if not by.is_open or not self._is_formed:
                return None
            by.is_stepping, by.has_held = False, True
            held = Held(next(self._held_numbers), by, call, why, is_after)
            self._held[held.number] = held
            by.notices.append(Notice(held))
            self.changed.notify_all()
            return held

    def _wait(self, held: Held, patience: float | None) -> Release:
        if not held.may_go.wait(patience):
            self.let_go(held)
        return held.release or GO

    def _hook_or_unhook(self) -> None:
        """Without the lock: to hook takes as long as an import."""
        with self._hooking:
            if self._hook is not None and self._breakpoints and self._unhook is None:
                self._unhook = self._hook(self)
            elif not self._breakpoints and self._unhook is not None:
                unhook, self._unhook = self._unhook, None
                unhook()

    def _look(self) -> None:
        """The caller holds the lock."""
        self.active = self._is_formed and bool(self._breakpoints)
        self.looks_after = any(it.breakpoint.is_after for it in self._breakpoints)

    def _let_go(self, held: Held, release: Release) -> bool:
        """The caller holds the lock."""
        if self._held.pop(held.number, None) is None:
            return False
        held.release = release
        held.may_go.set()
        held.by.notices.append(Notice(held, release))
        self.changed.notify_all()
        return True
