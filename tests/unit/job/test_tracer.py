"""Lines that a thread of another process runs for us: they run, and the process goes on as if nothing had been."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.support.waiting import until

from rankbridge_server.core.processes import look
from rankbridge_server.doctor.evidence import Thread
from rankbridge_server.job.outside import injection
from rankbridge_server.job.outside.tracer.functions import find
from rankbridge_server.job.outside.tracer.traced_thread import TracedThread

TRACER = "rankbridge_server.job.outside.tracer"
LIMIT_S = 60.0


@contextmanager
def process(code: str) -> Iterator[subprocess.Popen[str]]:
    """A process that has said that it is ready."""
    with subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as it:
        try:
            assert it.stdout is not None
            assert it.stdout.readline() == "ready\n"
            yield it
        finally:
            it.kill()


def trace(pid: int, thread: int, how: str, text: str) -> str:
    """Why it was not done; empty: it was."""
    command = [sys.executable, "-m", TRACER, str(pid), str(thread), how, text]
    done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_S, check=True)
    assert done.stderr == ""
    return done.stdout.strip()


def threads(pid: int) -> list[int]:
    """All but the main thread."""
    return sorted(int(it.name) for it in Path(f"/proc/{pid}/task").iterdir() if int(it.name) != pid)


# A thread waits for a lock without a limit, a second one with a limit, a third one in epoll.
IDLE = """
import select, threading, time
lock, held, poll = threading.Lock(), threading.Lock(), select.epoll()
held.acquire()
seen, ended = [], []
def wait(): held.acquire(); ended.append("lock")
def wait_long(): ended.append(("timed", held.acquire(timeout=3600.0)))
def wait_for_nothing(): ended.append(("epoll", poll.poll(3600.0)))
for it in (wait, wait_long, wait_for_nothing):
    threading.Thread(target=it, daemon=True).start()
print("ready", flush=True)
input()
print(len(seen), ended, flush=True)
"""


def test_lines_run_in_each_kind_of_blocked_thread_which_waits_on() -> None:
    with process(IDLE) as it:
        blocked = [it.pid, *threads(it.pid)]
        assert len(blocked) == 4
        until(lambda: all(_is_asleep(it.pid, thread) for thread in blocked))
        for _ in range(5):
            for thread in blocked:
                assert trace(it.pid, thread, "now", "seen.append(1)") == ""
        assert it.communicate("\n", timeout=LIMIT_S)[0] == "20 []\n"
        assert it.returncode == 0


# What it computes lies in registers of all kinds, and is the same each time.
COMPUTES = """
import signal, threading
import numpy as np
threading.Thread(target=signal.pause, daemon=True).start()
values = np.arange(1.0, 4097.0)
expected = float((np.sqrt(values) * 3.7 + values @ values).sum())
seen, wrong, going = [], 0, True
print("ready", flush=True)
while going:
    wrong += float((np.sqrt(values) * 3.7 + values @ values).sum()) != expected
print(len(seen), wrong, flush=True)
"""


def test_a_main_thread_that_computes_runs_the_lines_soon_and_computes_no_wrong_value() -> None:
    with process(COMPUTES) as it:
        until(lambda: any(_is_asleep(it.pid, thread) for thread in threads(it.pid)))
        (blocked, *_) = [thread for thread in threads(it.pid) if _is_asleep(it.pid, thread)]
        for _ in range(20):
            assert trace(it.pid, blocked, "soon", "seen.append(1)") == ""
        assert trace(it.pid, blocked, "soon", "going = False") == ""
        said, _ = it.communicate(timeout=LIMIT_S)
        seen, wrong = said.split()
        assert (int(seen), wrong) == (20, "0")
        assert it.returncode == 0


def test_lines_that_fail_or_exit_change_nothing() -> None:
    with process(IDLE) as it:
        thread = threads(it.pid)[0]
        until(lambda: _is_asleep(it.pid, thread))
        text = "try: raise SystemExit(3)\nexcept BaseException: pass\n"
        assert trace(it.pid, thread, "now", text) == ""
        assert it.communicate("\n", timeout=LIMIT_S)[0] == "0 []\n"


def test_a_thread_that_runs_is_not_asked_and_runs_on() -> None:
    with process("print('ready', flush=True)\nwhile True: pass") as it:
        assert trace(it.pid, it.pid, "now", "pass") == f"thread {it.pid} is no longer blocked"
        assert look(it.pid).state == "R"


def test_a_signal_that_comes_meanwhile_is_delivered() -> None:
    signalled = "import signal\nsignal.signal(signal.SIGUSR1, lambda *_: ended.append('signal'))\n"
    with process(IDLE.replace('print("ready"', signalled + 'print("ready"')) as it:
        until(lambda: _is_asleep(it.pid, it.pid))
        text = f"import os, signal\nfor _ in range(3): os.kill({it.pid}, signal.SIGUSR1)"
        assert trace(it.pid, it.pid, "now", text) == ""
        said, _ = it.communicate("\n", timeout=LIMIT_S)
        assert said.startswith("0 ['signal'")


def test_a_process_that_ends_in_the_call_is_said_to_have_ended() -> None:
    with process(IDLE) as it:
        until(lambda: _is_asleep(it.pid, it.pid))
        said = trace(it.pid, it.pid, "now", "import os; os._exit(7)")
        assert said == f"the process of thread {it.pid} has ended"
        assert it.wait(LIMIT_S) == 7


def test_a_process_that_is_stopped_in_the_call_goes_on_once_it_is_woken() -> None:
    with process(IDLE) as it:
        thread = threads(it.pid)[0]
        until(lambda: _is_asleep(it.pid, thread))
        text = f"import os, signal; os.kill({it.pid}, signal.SIGSTOP); seen.append(1)"
        command = [sys.executable, "-m", TRACER, str(it.pid), str(thread), "now", text]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as tracer:
            until(lambda: look(it.pid).state == "T")
            assert tracer.poll() is None
            os.kill(it.pid, signal.SIGCONT)
            assert tracer.communicate(timeout=LIMIT_S)[0] == ""
        assert it.communicate("\n", timeout=LIMIT_S)[0] == "1 []\n"


def test_a_thread_that_somebody_else_traces_is_left_to_them() -> None:
    with process(IDLE) as it:
        thread = threads(it.pid)[0]
        until(lambda: _is_asleep(it.pid, thread))
        holds = (
            f"from {TRACER}.traced_thread import TracedThread\n"
            f"with TracedThread({thread}): print('held', flush=True), input()"
        )
        with subprocess.Popen(
            [sys.executable, "-c", holds], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        ) as other:
            assert other.stdout is not None
            assert other.stdout.readline() == "held\n"
            said = trace(it.pid, thread, "now", "seen.append(1)")
            assert said == f"process {other.pid} traces thread {thread} already"
            other.communicate("\n", timeout=LIMIT_S)
        assert it.communicate("\n", timeout=LIMIT_S)[0] == "0 []\n"


NOT_DUMPABLE = "import ctypes; ctypes.CDLL(None).prctl(4, 0)\nprint('ready', flush=True)\ninput()"


def test_without_permission_it_says_what_to_grant(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plain = tmp_path / "python"
    without = "--bounding-set=-sys_ptrace --inh-caps=-sys_ptrace"
    plain.write_text(f'#!/bin/sh\nexec setpriv {without} {sys.executable} "$@"\n')
    plain.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(plain) if os.geteuid() == 0 else sys.executable)
    with process(NOT_DUMPABLE) as it:
        until(lambda: _is_asleep(it.pid, it.pid))
        thread = Thread(name="MainThread", os_id=it.pid, state="S", owns_gil=False)
        assert "CAP_SYS_PTRACE" in injection.read(it.pid, [thread]).trouble
        it.communicate("\n", timeout=LIMIT_S)
        assert it.returncode == 0


def test_a_process_without_python_has_no_functions() -> None:
    with subprocess.Popen(["sleep", "100"]) as it:
        try:
            assert find(it.pid, ["PyGILState_Ensure"]) is None
        finally:
            it.kill()


def test_a_call_gives_its_result_and_the_thread_waits_on() -> None:
    with process(IDLE) as it:
        thread = threads(it.pid)[0]
        until(lambda: _is_asleep(it.pid, thread))
        functions = find(it.pid, ["PyMem_RawMalloc", "PyMem_RawFree"])
        assert functions is not None
        with TracedThread(thread) as traced:
            assert traced.is_blocked
            place = traced.call(functions.by_name["PyMem_RawMalloc"], 8, back_to=functions.trap)
            traced.write(place, b"rank\0")
            with open(f"/proc/{it.pid}/mem", "rb") as memory:
                memory.seek(place)
                assert memory.read(5) == b"rank\0"
            traced.call(functions.by_name["PyMem_RawFree"], place, back_to=functions.trap)
        until(lambda: _is_asleep(it.pid, thread))
        assert it.communicate("\n", timeout=LIMIT_S)[0] == "0 []\n"


def _is_asleep(pid: int, thread: int) -> bool:
    return (look(pid).threads or {}).get(thread) == "S"
