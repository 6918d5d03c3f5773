"""`python -m rankbridge_server.job.outside.tracer PID THREADS how TEXT`: lets a rank run some lines of Python.

THREADS: numbers with commas; the first one that is blocked is taken. `how`: "now": there; "soon": at the next safe
point of the main thread, which runs. A process of its own, as nothing may end it while a call is under way. Says on
standard output why nothing was run.
"""

from __future__ import annotations

import signal
import sys
from collections.abc import Sequence

from .functions import Functions, find
from .traced_thread import NOT_PERMITTED, NotNow, ProcessEnded, TracedThread

_TRIES = 3
_NAMES = (
    "PyMem_RawMalloc",
    "PyMem_RawFree",
    "PyGILState_Ensure",
    "PyRun_SimpleString",
    "PyGILState_Release",
    "Py_AddPendingCall",
)


def _run_now(functions: Functions, blocked: Sequence[int], text: bytes) -> None:
    with _first_blocked(blocked) as thread:
        address = _placed(functions, thread, text)
        held = _call(functions, thread, "PyGILState_Ensure")
        _call(functions, thread, "PyRun_SimpleString", address)
        _call(functions, thread, "PyGILState_Release", held)
        _call(functions, thread, "PyMem_RawFree", address)


def _run_soon(functions: Functions, blocked: Sequence[int], main: int, text: bytes) -> None:
    # The main thread runs, and may be inside malloc.
    with _first_blocked(blocked) as thread:
        address = _placed(functions, thread, text)
    with TracedThread(main) as thread:
        _call(functions, thread, "Py_AddPendingCall", functions.by_name["PyRun_SimpleString"], address)


def _first_blocked(numbers: Sequence[int]) -> TracedThread:
    """The first of them that is blocked: one that polls wakes now and then. Raises NotNow."""
    why = ""
    for number in [*numbers] * _TRIES:
        try:
            thread = TracedThread(number)
        except NotNow as error:
            why = str(error)
            continue
        if thread.is_blocked:
            return thread
        thread.close()
        why = f"thread {number} is no longer blocked"
    raise NotNow(why)


def _placed(functions: Functions, thread: TracedThread, text: bytes) -> int:
    """Where the text is in the rank's memory."""
    address = _call(functions, thread, "PyMem_RawMalloc", len(text) + 1)
    if not address:
        raise NotNow("the rank has no memory left")
    thread.write(address, text + b"\0")
    return address


def _call(functions: Functions, thread: TracedThread, name: str, *arguments: int) -> int:
    return thread.call(functions.by_name[name], *arguments, back_to=functions.trap)


def main(pid: int, blocked: Sequence[int], how: str, text: str) -> None:
    """Runs the lines, or says why not."""
    for it in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(it, signal.SIG_IGN)
    try:
        functions = find(pid, _NAMES)
        if functions is None:
            raise NotNow("it runs a Python whose functions are not found")
        if how == "now":
            _run_now(functions, blocked, text.encode())
        else:
            _run_soon(functions, blocked, pid, text.encode())
    except PermissionError:
        print(NOT_PERMITTED)
    except (NotNow, ProcessEnded, OSError) as error:
        print(error)


if __name__ == "__main__":
    main(int(sys.argv[1]), [int(it) for it in sys.argv[2].split(",")], *sys.argv[3:])
