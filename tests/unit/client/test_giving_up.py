"""A controller that gives a call up, or dies, takes it back from real ranks of the fake backend."""

from __future__ import annotations

import asyncio
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from tests.support.gangs import RunningGang
from tests.support.waiting import until

import rankbridge
from rankbridge import Gang, Pending
from rankbridge._plan.gang_core import new_id
from rankbridge._transport.threads.local_stream import LocalStream

AT_ONCE = 40.0
"""Far below the timeout of what is given up, in seconds, and far above what a busy machine needs."""

TIMEOUT = 180.0
"""Timeout of what is given up, in seconds."""


@pytest.fixture
def watcher(fake4: RunningGang) -> Iterator[Gang]:
    """A gang of the same ranks, to see what they are doing."""
    with rankbridge.connect(fake4.description) as gang:
        yield gang


def until_pending(gang: Gang, rank: int, count: int) -> None:
    """Asks until so many operations are pending on a rank; each question waits for its answer."""
    give_up = time.monotonic() + TIMEOUT
    while gang[rank].status().pending_operations != count:
        assert time.monotonic() < give_up


def check_withdrawn(gang: Gang, rank: int) -> None:
    began = time.monotonic()
    until_pending(gang, rank, 0)
    gang.barrier(timeout=TIMEOUT)
    assert time.monotonic() - began < AT_ONCE


def waits(thread: int) -> bool:
    """Says whether a thread waits for the end of a call."""
    frame = sys._current_frames().get(thread)
    while frame is not None and frame.f_code is not Pending.result.__code__:
        frame = frame.f_back
    return frame is not None


def in_the_call(gang: Gang) -> None:
    gang[1].barrier(timeout=TIMEOUT)


def for_one_that_was_started(gang: Gang) -> None:
    pending = gang[1].start("barrier", timeout=TIMEOUT)
    try:
        pending.result()
    finally:
        pending.cancel()


@pytest.mark.parametrize("wait", [in_the_call, for_one_that_was_started])
def test_an_interrupt_withdraws_the_call_that_it_interrupts(
    watcher: Gang, wait: Callable[[Gang], None]
) -> None:
    main = threading.main_thread().ident
    assert main is not None

    def interrupt() -> None:
        until_pending(watcher, 1, 1)
        # What interrupts a program between its calls is its own to handle.
        until(lambda: waits(main))
        signal.pthread_kill(main, signal.SIGINT)

    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    interrupter = threading.Thread(target=interrupt)
    interrupter.start()
    try:
        with rankbridge.connect(watcher.targets) as gang:
            with pytest.raises(KeyboardInterrupt) as interrupted:
                wait(gang)
            # Neither the end of the gang nor that of the exception is needed for it.
            check_withdrawn(watcher, 1)
            assert interrupted.value.__traceback__ is not None
    finally:
        interrupter.join()
        signal.signal(signal.SIGINT, before)


@pytest.mark.parametrize("named", [False, True], ids=["without an id", "with an id"])
@pytest.mark.parametrize("call", ["barrier", "start"])
def test_an_interrupt_withdraws_the_call_that_it_meets_as_it_is_sent(
    watcher: Gang, monkeypatch: pytest.MonkeyPatch, call: str, named: bool
) -> None:
    sending, operation_id = LocalStream._write_soon, new_id() if named else None

    def interrupted(*args: Any) -> None:
        sending(*args)
        monkeypatch.undo()
        until_pending(watcher, 1, 1)
        raise KeyboardInterrupt

    given = ["barrier"] if call == "start" else []
    with rankbridge.connect(watcher.targets) as gang:
        monkeypatch.setattr(LocalStream, "_write_soon", interrupted)
        with pytest.raises(KeyboardInterrupt):
            getattr(gang[1], call)(*given, timeout=TIMEOUT, operation_id=operation_id)
        check_withdrawn(watcher, 1)


def test_cancelling_a_started_call_withdraws_it(watcher: Gang) -> None:
    pending = watcher[3].start("barrier", timeout=TIMEOUT)
    until_pending(watcher, 3, 1)
    pending.cancel()
    check_withdrawn(watcher, 3)
    assert isinstance(pending.exception(), rankbridge.CallCancelledError)


def test_cancelling_a_task_withdraws_its_call(watcher: Gang) -> None:
    async def run() -> None:
        async with rankbridge.aconnect(watcher.targets) as gang:
            task = asyncio.create_task(gang[2].barrier(timeout=TIMEOUT))
            await asyncio.to_thread(until_pending, watcher, 2, 1)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            await asyncio.to_thread(check_withdrawn, watcher, 2)

    asyncio.run(run())


def test_a_killed_controller_leaves_no_call_behind(watcher: Gang) -> None:
    program = "import rankbridge, sys\nrankbridge.connect(sys.argv[1:], lease=None)[0].barrier(timeout=180)\n"
    with subprocess.Popen([sys.executable, "-c", program, *watcher.targets]) as controller:
        until_pending(watcher, 0, 1)
        controller.kill()
    check_withdrawn(watcher, 0)
