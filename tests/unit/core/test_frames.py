"""The stacks of other threads can be read while those threads go on."""

from __future__ import annotations

import gc
import multiprocessing
import subprocess
import sys
import textwrap
import threading

import pytest

from rankbridge_server.core.frames import current_frames

pytestmark = pytest.mark.skipif(
    sys.version_info >= (3, 12), reason="this Python collects garbage only between two instructions"
)
WALK = textwrap.dedent(
    """
    import gc, os, sys, threading, time
    from contextlib import contextmanager
    from rankbridge_server.core.frames import current_frames

    @contextmanager
    def plain():
        yield sys._current_frames()

    class Garbage:
        def __init__(self):
            self.me = self

        def __del__(self):
            # Other threads go on.
            time.sleep(0.0003)

    def leaf(n):
        return n if n == 0 else leaf(n - 1)

    def other(n, before=0):
        now = {n: before}
        return now if n == 0 else other(n - 1, now)

    def busy():
        while True:
            leaf(9), other(7), sorted([3, 1, 2], key=lambda it: leaf(it))

    for _ in range(4):
        threading.Thread(target=busy, daemon=True).start()
    gc.set_threshold(8)
    end = time.monotonic() + float(sys.argv[2])
    frames_of = {"plain": plain, "ours": current_frames}[sys.argv[1]]
    while time.monotonic() < end:
        with frames_of() as frames:
            Garbage()
            for frame in list(frames.values()):
                while frame is not None:
                    assert frame.f_code.co_name and frame.f_lineno
                    frame = frame.f_back
    os._exit(7)
    """
)


def walked(how: str, seconds: float) -> int:
    """The exit status of a process that has walked the stacks of its threads for so long: 7, if it came through."""
    command = [sys.executable, "-c", WALK, how, str(seconds)]
    # Memory that is overwritten may also make it hang.
    try:
        return subprocess.run(command, capture_output=True, timeout=seconds + 30, check=False).returncode
    except subprocess.TimeoutExpired:
        return -1


def test_stacks_are_walked_while_garbage_would_be_collected() -> None:
    assert walked("ours", 3) == 7


def test_this_python_does_not_survive_it_otherwise() -> None:
    """If it does, `current_frames` has nothing left to do."""
    assert walked("plain", 30) != 7


def test_garbage_is_collected_again_after_the_last_of_several() -> None:
    entered, leave = threading.Event(), threading.Event()

    def look() -> None:
        with current_frames():
            entered.set()
            leave.wait(60)

    thread = threading.Thread(target=look)
    with current_frames() as frames:
        assert threading.get_ident() in frames
        assert not gc.isenabled()
        thread.start()
        assert entered.wait(60)
    assert not gc.isenabled()
    leave.set()
    thread.join()
    assert gc.isenabled()


def test_who_collects_no_garbage_goes_on_so() -> None:
    gc.disable()
    try:
        with current_frames():
            pass
        assert not gc.isenabled()
    finally:
        gc.enable()


def test_a_process_that_was_forked_meanwhile_collects_garbage() -> None:
    context = multiprocessing.get_context("fork")
    with current_frames():
        child = context.Process(target=lambda: sys.exit(0 if gc.isenabled() else 1))
        child.start()
    child.join(60)
    assert child.exitcode == 0
