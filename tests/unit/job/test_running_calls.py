"""The next generation waits for the calls of the last one, but not for those that torch.distributed keeps."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

import pytest
import torch
from torch._C import _distributed_c10d as c10d

from rankbridge_server.job import running_calls
from rankbridge_server.job.running_calls import LeftBehind, RunningCalls

SECONDS = 30.0
TORCHS_TIMEOUT = timedelta(seconds=4)


class NotWantedError(Exception):
    """Ends a wait that goes on."""


@pytest.fixture(autouse=True)
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(running_calls, "_LOOK_S", 0.02)
    monkeypatch.setattr(running_calls, "_STILL_S", 0.2)


def fine() -> None:
    pass


def later(seconds: float) -> Callable[[], None]:
    """A check that wants no more after so many seconds."""
    end = time.monotonic() + seconds

    def check() -> None:
        if time.monotonic() > end:
            raise NotWantedError

    return check


@contextmanager
def running(calls: RunningCalls, body: Callable[[], None]) -> Iterator[threading.Thread]:
    """Calls `body` on a thread of its own, as a function."""
    has_begun = threading.Event()

    def run() -> None:
        calls.begin(fine)
        has_begun.set()
        try:
            body()
        finally:
            calls.end()

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    assert has_begun.wait(SECONDS)
    yield thread
    thread.join(SECONDS)
    assert not thread.is_alive()


def groups() -> list[Any]:
    """Both members of a group."""
    store, made = c10d.HashStore(), dict[int, c10d.ProcessGroupGloo]()

    def make(rank: int) -> None:
        made[rank] = c10d.ProcessGroupGloo(store, rank, 2, TORCHS_TIMEOUT)

    threads = [threading.Thread(target=make, args=(rank,)) for rank in range(2)]
    for it in threads:
        it.start()
    for it in threads:
        it.join(SECONDS)
    return [made[0], made[1]]


def test_a_call_that_torch_keeps_is_left_behind_and_does_nothing_more() -> None:
    calls, members, went_on = RunningCalls(leaves=True), groups(), list[str]()
    ended: list[BaseException] = []

    def wait_for_nobody() -> None:
        try:
            try:
                members[0].allreduce([torch.ones(2)]).wait()
            except RuntimeError:
                went_on.append("")
            went_on.append("as if nothing was")
        except LeftBehind as error:
            ended.append(error)

    with running(calls, wait_for_nobody) as thread:
        calls.begin_alone(0, later(SECONDS))
        assert thread.is_alive()
        calls.end()
    assert "as if nothing was" not in went_on
    assert len(ended) == 1


@pytest.mark.parametrize("what", ["waits", "sleeps", "computes"])
def test_a_call_that_does_something_of_its_own_is_waited_for(what: str) -> None:
    calls, is_over = RunningCalls(leaves=True), threading.Event()

    def body() -> None:
        tensor = torch.ones(200, 200)
        while what != "waits" and not is_over.is_set():
            if what == "computes":
                tensor = torch.mm(tensor, tensor) / 200
            else:
                time.sleep(0.5)
        is_over.wait(SECONDS)

    with running(calls, body):
        with pytest.raises(NotWantedError):
            calls.begin_alone(0, later(1.0))
        is_over.set()
        calls.begin_alone(0, later(SECONDS))
        calls.end()


def test_a_call_in_the_jobs_own_groups_is_waited_for() -> None:
    calls, members = RunningCalls(leaves=False), groups()

    def wait() -> None:
        members[0].allreduce([torch.ones(2)]).wait()

    with running(calls, wait) as thread:
        with pytest.raises(NotWantedError):
            calls.begin_alone(0, later(1.0))
        assert thread.is_alive()
        members[1].allreduce([torch.ones(2)]).wait()


def test_none_begins_that_may_not() -> None:
    calls = RunningCalls(leaves=True)

    def refuse() -> None:
        raise NotWantedError

    with pytest.raises(NotWantedError):
        calls.begin(refuse)
    with pytest.raises(NotWantedError):
        calls.begin_alone(0, refuse)
    calls.begin_alone(0, later(SECONDS))
    calls.end()
