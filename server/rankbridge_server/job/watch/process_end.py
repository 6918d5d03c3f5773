"""Sees how a rank's process ends."""

from __future__ import annotations

import atexit
import os
import sys
import threading
from multiprocessing.process import BaseProcess
from types import TracebackType
from typing import Any, NoReturn

from .recorder import Recorder


def watch_end(recorder: Recorder) -> None:
    """Records how the process ends: normally, by an exception, or with a status that is not 0."""
    excepthook, leave, leave_at_once, run = sys.excepthook, sys.exit, os._exit, BaseProcess.run
    reason = ""

    def note(status: Any, error: BaseException | None) -> None:
        nonlocal reason
        if isinstance(error, SystemExit):
            status, error = error.code, None
        if error is not None and status != 0:
            reason = f"{type(error).__name__}: {error}"
        elif status is None or status == 0:
            reason = ""
        else:
            # Who has caught an exception asks for a status later.
            reason = reason or f"SystemExit: {status}"

    def ended() -> None:
        ring = recorder.written
        if ring is not None and os.getpid() == recorder.pid and not ring.has_ended:
            ring.ended(2 if reason else 1, reason)

    def hook(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        note(1, error)
        ended()
        excepthook(kind, error, trace)

    def exit(status: Any = None, /) -> NoReturn:
        # In another thread it ends that alone.
        if threading.current_thread() is threading.main_thread():
            note(status, sys.exc_info()[1] if status else None)
        leave(status)

    # What multiprocessing has forked ends so.
    def exit_at_once(status: int) -> NoReturn:
        note(status, None)
        ended()
        leave_at_once(status)

    # What multiprocessing has started prints its exceptions and asks for a status.
    def run_and_note(process: BaseProcess) -> None:
        try:
            run(process)
        except BaseException as error:
            note(1, error)
            raise

    sys.excepthook, sys.exit, os._exit = hook, exit, exit_at_once
    BaseProcess.run = run_and_note  # type: ignore[method-assign, assignment]
    atexit.register(ended)
