"""The calls of the user's code that this rank is within, and those that torch.distributed does not give back."""

from __future__ import annotations

import ctypes
import os
import threading
import time
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import NamedTuple

import torch

from ..core.frames import current_frames
from ..core.functions.raised import place_of
from ..core.logger import LOGGER
from ..core.processes import look
from ..core.torch_state import called_method

_LOOK_S = 0.5
_STILL_S = 3.0
"""A thread that has not moved in torch for so long is left behind. Its connections are shut within a second."""
_NO_WORK_S = 0.1
"""CPU time of a thread that sleeps, and is woken for nothing now and then."""
_TORCH = str(Path(torch.__file__).parent) + "/"
_OURS = str(Path(__file__).parents[1]) + "/"


class LeftBehind(BaseException):
    """Ends a call that comes back from torch.distributed after the rank has gone on without it."""


class _Sleep(NamedTuple):
    """A look at a thread that sleeps in torch. `instruction`: of its innermost Python code."""

    code: object
    instruction: int
    cpu_s: float
    at: float

    def goes_on(self, later: _Sleep) -> bool:
        """Whether a later look is at the same sleep. A process that is stopped and continued wakes all its threads."""
        is_there = self.code is later.code and self.instruction == later.instruction
        return is_there and later.cpu_s - self.cpu_s < _NO_WORK_S


class RunningCalls:
    """Counts a call by its thread. Thread-safe.

    `leaves`: whether what torch.distributed keeps is left behind: its groups are those of a generation, which is over.
    """

    def __init__(self, leaves: bool) -> None:
        self._leaves = leaves
        self._changed = threading.Condition()
        self._threads: set[int] = set()

    def begin(self, check: Callable[[], None]) -> None:
        """Begins a call on this thread. `check`: raises if none may begin; nothing else begins or ends meanwhile."""
        with self._changed:
            check()
            self._threads.add(threading.get_ident())

    def begin_alone(self, rank: int, check: Callable[[], None]) -> None:
        """Begins one when all others have ended. `check`: raises if this is no longer wanted. `rank`: for the log.

        A thread that waits in torch.distributed for good may be left behind: Gloo tells a sender nothing of a
        connection that is shut in the middle of a message. It ends by LeftBehind when torch's own timeout is over.
        """
        asleep: dict[int, _Sleep] = {}
        with self._changed:
            check()
            while self._threads:
                self._changed.wait(_LOOK_S)
                check()
                for thread in self._kept(asleep) if self._leaves else ():
                    self._leave(thread, rank)
            self._threads.add(threading.get_ident())

    def end(self) -> None:
        """Ends this thread's call."""
        with self._changed:
            self._threads.discard(threading.get_ident())
            self._changed.notify_all()

    def _kept(self, asleep: dict[int, _Sleep]) -> list[int]:
        """Looks at all threads; gives those that torch keeps. `asleep`: the first look at each sleep."""
        kept = []
        for thread in self._threads:
            now, first = _sleep_in_torch(thread), asleep.pop(thread, None)
            if now is None:
                continue
            asleep[thread] = first if first is not None and first.goes_on(now) else now
            if now.at - asleep[thread].at > _STILL_S:
                kept.append(thread)
        return kept

    def _leave(self, thread: int, rank: int) -> None:
        self._threads.discard(thread)
        what = "a call of an earlier generation does not come back from torch.distributed, and is left behind: %s"
        where = place_of(thread) or f"thread {thread}"
        LOGGER.warning(what, where, extra={"rank": rank, "event": "left_behind"})
        # What it would call next would be taken for a call of the new generation.
        ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread), ctypes.py_object(LeftBehind))


def _sleep_in_torch(thread: int) -> _Sleep | None:
    """Where a thread sleeps in a call of torch; None: it does not."""
    native = next((it.native_id for it in threading.enumerate() if it.ident == thread), None)
    with current_frames() as frames:
        frame = frames.get(thread)
        if native is None or frame is None or not _is_in_torch(frame):
            return None
        code, instruction = frame.f_code, frame.f_lasti
    kernel = look(os.getpid(), native)
    return _Sleep(code, instruction, kernel.cpu_s, time.monotonic()) if kernel.state == "S" else None


def _is_in_torch(frame: FrameType | None) -> bool:
    # Recorded calls wait in ours.
    while frame is not None and frame.f_code.co_filename.startswith(_OURS):
        frame = frame.f_back
    if frame is None:
        return False
    # `wait`: of a Work or a Future of torch, by the user's own line; Python's own waits have frames of Python's.
    return frame.f_code.co_filename.startswith(_TORCH) or called_method(frame) == "wait"
